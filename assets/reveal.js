// Guess, then reveal (scant_dashboard/page_parts/guess_first.py). The guesses of a visitor, or of a room that
// calls them out, are counted here and go nowhere; those of phones come once they are revealed. So
// does the answer.

export function render({model, el}) {
  const root = make('div', 'reveal'), first = make('label', 'first'), box = make('input')
  box.type = 'checkbox'
  box.setAttribute('role', 'switch')
  first.append(box, ` ${tr('Guess first')}`)
  const form = make('div', 'form'), question = make('p', 'question'), row = make('div', 'row')
  const count = make('p', 'count'), answer = make('p', 'answer')
  question.setAttribute('role', 'note')
  for (const heard of [count, answer]) heard.setAttribute('aria-live', 'polite')
  const slide = make('input'), at = make('output')
  slide.type = 'range'
  const picture = make('button', 'picture'), image = make('img'), mark = make('i')
  picture.type = 'button'
  image.alt = ''
  picture.append(image, mark)
  let place = null  // on the picture
  const put = (x, y) => {
    place = [x, y].map((v) => Math.min(1, Math.max(0, v)))
    draw()
  }
  picture.addEventListener('click', (event) => {
    const box = picture.getBoundingClientRect()
    if (event.detail) put((event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height)
    else if (!place) put(0.5, 0.5)
  })
  picture.addEventListener('keydown', (event) => {
    const by = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1]}[event.key]
    if (!by) return
    event.preventDefault()
    event.stopPropagation()
    const [x, y] = place ?? [0.5, 0.5]
    put(x + 0.02 * by[0], y + 0.02 * by[1])
  })
  const kind = () => model.choices.length ? 'choice' : model.picture ? 'point' : 'number'
  const add = pressed(tr('Count this guess'), () => vote(kind() === 'point' ? place : Number(slide.value)))
  const again = pressed(tr('Start over'), () => { own = []; draw() })
  const reveal = pressed(tr('Reveal'), () => { model.revealed = true })
  reveal.className = 'go'
  form.append(question, picture, row, count, answer)
  root.append(first, form)
  el.replaceChildren(root)

  let own = [], shown = 0
  const all = () => model.room ? model.guesses : own
  const vote = (guess) => { own.push(guess); draw() }
  const value = (number) => fixed(number, model.digits) + model.unit
  const many = (n) => ntr('{n} guess', '{n} guesses', n)
  const away = (guess) => {
    const off = Number(guess.toFixed(model.digits)) - Number(model.truth.toFixed(model.digits))
    if (!off) return tr('right')
    return off > 0 ? tr('{value} too high', {value: value(off)}) : tr('{value} too low', {value: value(-off)})
  }
  const chosen = (guesses) => {
    const right = guesses.filter((guess) => guess === model.truth).length
    if (!guesses.length) return tr('Nobody guessed.')
    if (guesses.length > 1) return tr('Right guesses: {right} of {n}.', {right, n: guesses.length})
    const choice = model.choices[guesses[0]]
    return right ? tr('You guessed {choice}: right.', {choice}) : tr('You guessed {choice}.', {choice})
  }
  const pointed = (guesses) => {
    const [left, top, right, bottom] = model.band
    const hit = guesses.filter(([x, y]) => left <= x && x <= right && top <= y && y <= bottom).length
    return guesses.length ? tr('Guesses in the box: {hit} of {n}.', {hit, n: guesses.length}) : tr('Nobody guessed.')
  }
  const slid = (guesses) => {
    if (model.room && !guesses.length) return tr('Nobody guessed.')
    if (guesses.length < 2) {
      const guess = guesses[0] ?? Number(slide.value)
      return tr('You guessed {value}: {off}.', {value: value(guess), off: away(guess)})
    }
    const sorted = guesses.toSorted((one, other) => one - other)
    const middle = sorted[Math.floor((sorted.length - 1) / 2)]
    const far = (guess) => Math.abs(guess - model.truth)
    const nearest = sorted.reduce((best, guess) => far(guess) < far(best) ? guess : best)
    return tr('Of {n} guesses the nearest was {nearest}; the median, {median}, was {off}.',
      {n: sorted.length, nearest: value(nearest), median: value(middle), off: away(middle)})
  }
  const lay = () => {
    const choices = model.choices.map((words, k) => pressed(words, () => vote(k)))
    Object.assign(slide, {min: model.span[0], max: model.span[1], step: model.span[2]})
    slide.value = model.start
    slide.setAttribute('aria-label', tr('Your guess'))
    place = null
    if (model.picture) image.src = model.picture
    picture.hidden = !model.picture
    picture.disabled = kind() !== 'point'
    picture.setAttribute('aria-label', tr('The picture: touch a place, or move the mark with the arrow keys'))
    const guessed = {choice: choices, number: [slide, at, add], point: [add]}[kind()]
    row.replaceChildren(...guessed, reveal, again)
    draw()
  }
  const draw = () => {
    box.checked = model.first
    form.hidden = !model.first || !(model.question || model.idle)
    question.textContent = model.question || model.idle
    row.hidden = !model.question
    at.textContent = value(Number(slide.value))
    const open = !model.revealed
    for (const part of row.children) {
      part.disabled = !open || (model.room && part !== reveal)
      part.hidden = Boolean(model.room) && part !== reveal && kind() !== 'choice'
    }
    if (!place) add.disabled ||= kind() === 'point'
    again.disabled = false
    again.hidden = Boolean(model.room) || !own.length || !open
    mark.hidden = !place || Boolean(model.room)
    if (place) Object.assign(mark.style, {left: `${100 * place[0]}%`, top: `${100 * place[1]}%`})
    const guesses = all()
    if (model.room && guesses.length > shown) form.scrollIntoView({block: 'start', behavior: 'smooth'})
    shown = guesses.length
    picture.hidden = !model.picture || (guesses.length > 0 && Boolean(model.room) && !open)  // it is shown below
    model.choices.forEach((words, k) => {
      const n = guesses.filter((guess) => guess === k).length
      row.children[k].textContent = n ? `${words} · ${n}` : words
    })
    count.textContent = !open || !model.question ? '' : model.room
      ? ntr('{votes} of {n} phone has answered.', '{votes} of {n} phones have answered.', model.phones, {votes: model.votes})
      : own.length ? tr('{guesses} so far, counted in this window only.', {guesses: many(own.length)}) : ''
    const summary = {choice: chosen, number: slid, point: pointed}[kind()]
    const known = model.revealed && model.truth !== null
    answer.textContent = known ? `${model.answer} ${summary(guesses)}`
      : model.revealed ? tr('The model is being asked…') : ''
  }
  box.addEventListener('change', () => { model.first = box.checked })
  slide.addEventListener('input', draw)
  model.on(['first', 'idle', 'revealed', 'answer', 'truth', 'room', 'phones', 'votes', 'guesses'], draw)
  model.on('turn', () => setTimeout(() => { own = []; lay() }, 0))  // once all of it has come
  lay()
  // A room is asked what its presenter has in view, below the run bar.
  const look = new IntersectionObserver((seen) => {
    const now = Boolean(model.room) && seen.at(-1).intersectionRatio >= 0.6
    if (now !== model.seen) model.seen = now
  }, {threshold: 0.6, rootMargin: '-140px 0px 0px 0px'})
  const watch = () => {
    look.disconnect()
    if (model.room) look.observe(question)
    else if (model.seen) model.seen = false
  }
  model.on('room', watch)
  watch()
}
