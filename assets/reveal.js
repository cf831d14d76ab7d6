// Guess, then reveal (dashboard/controls/reveal.py). The guesses of a visitor, or of a room that
// calls them out, are counted here and go nowhere; the answer comes once it is asked for.

export function render({model, el}) {
  const make = (tag, name = '', words = '') => {
    const made = document.createElement(tag)
    made.className = name
    made.textContent = words
    return made
  }
  const pressed = (words, act) => {
    const button = make('button', '', words)
    button.type = 'button'
    button.addEventListener('click', act)
    return button
  }
  const root = make('div', 'reveal'), first = make('label', 'first'), box = make('input')
  box.type = 'checkbox'
  box.setAttribute('role', 'switch')
  first.append(box, ' Guess first')
  const form = make('div', 'form'), question = make('p', 'question'), row = make('div', 'row')
  const count = make('p', 'count'), answer = make('p', 'answer')
  question.setAttribute('role', 'note')
  for (const heard of [count, answer]) heard.setAttribute('aria-live', 'polite')
  const slide = make('input'), at = make('output')
  slide.type = 'range'
  const add = pressed('Count this guess', () => vote(Number(slide.value)))
  const again = pressed('Start over', () => { guesses = []; draw() })
  const reveal = pressed('Reveal', () => { model.revealed = true })
  reveal.className = 'go'
  form.append(question, row, count, answer)
  root.append(first, form)
  el.replaceChildren(root)

  let guesses = []
  const vote = (guess) => { guesses.push(guess); draw() }
  const value = (number) => number.toFixed(model.digits) + model.unit
  const many = (n) => `${n} ${n === 1 ? 'guess' : 'guesses'}`
  const away = (guess) => {
    const off = Number(guess.toFixed(model.digits)) - Number(model.truth.toFixed(model.digits))
    return off ? `${value(Math.abs(off))} too ${off > 0 ? 'high' : 'low'}` : 'right'
  }
  const chosen = () => {
    const right = guesses.filter((guess) => guess === model.truth).length
    if (!guesses.length) return 'Nobody guessed.'
    if (guesses.length > 1) return `${right} of ${many(guesses.length)} said so.`
    return `You guessed ${model.choices[guesses[0]]}${right ? ': right.' : '.'}`
  }
  const slid = () => {
    if (guesses.length < 2) {
      const guess = guesses[0] ?? Number(slide.value)
      return `You guessed ${value(guess)}: ${away(guess)}.`
    }
    const sorted = guesses.toSorted((one, other) => one - other)
    const middle = sorted[Math.floor((sorted.length - 1) / 2)]
    const far = (guess) => Math.abs(guess - model.truth)
    const nearest = sorted.reduce((best, guess) => far(guess) < far(best) ? guess : best)
    return `Of ${many(sorted.length)} the nearest was ${value(nearest)}; the middle one, `
      + `${value(middle)}, was ${away(middle)}.`
  }
  const lay = () => {
    const choices = model.choices.map((words, k) => pressed(words, () => vote(k)))
    Object.assign(slide, {min: model.span[0], max: model.span[1], step: model.span[2]})
    slide.value = model.start
    slide.setAttribute('aria-label', 'Your guess')
    row.replaceChildren(...(choices.length ? choices : [slide, at, add]), reveal, again)
    draw()
  }
  const draw = () => {
    box.checked = model.first
    form.hidden = !model.first || !(model.question || model.idle)
    question.textContent = model.question || model.idle
    row.hidden = !model.question
    at.textContent = value(Number(slide.value))
    const open = !model.revealed
    for (const part of row.children) part.disabled = !open
    again.disabled = false
    again.hidden = !guesses.length || !open
    model.choices.forEach((words, k) => {
      const n = guesses.filter((guess) => guess === k).length
      row.children[k].textContent = n ? `${words} · ${n}` : words
    })
    count.textContent = guesses.length && open ? `${many(guesses.length)} so far, counted in this window only.` : ''
    const known = model.revealed && model.truth !== null
    answer.textContent = known ? `${model.answer} ${model.choices.length ? chosen() : slid()}`
      : model.revealed ? 'The model is being asked…' : ''
  }
  box.addEventListener('change', () => { model.first = box.checked })
  slide.addEventListener('input', draw)
  model.on(['first', 'idle', 'revealed', 'answer', 'truth'], draw)
  model.on('turn', () => setTimeout(() => { guesses = []; lay() }, 0))  // once all of it has come
  lay()
}
