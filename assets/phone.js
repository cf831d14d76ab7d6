// A phone in a room: the question that the presenter shows, one control, and what became of it.
// The server tells what to show (scant_dashboard/room/room.py, seen_by); votes go one by one.
(() => {
  const at = (id) => document.getElementById(id)
  const [where, asked, ballot, control, send, said, turns, page, wall, join, run, curve, about] =
    ['where', 'asked', 'ballot', 'control', 'send', 'said', 'turns', 'page', 'wall', 'join', 'run', 'curve', 'about'].map(at)
  const code = location.pathname.split('/').at(-1)
  const path = (end) => new URL(`${code}/${end}`, location.href).href

  let state = null
  let shown = null  // the number of the question on show
  let laid = ''  // what the control was made for
  let guess = null  // as the control has it; null before it was touched
  let fault = ''

  const make = (tag, more = {}) => Object.assign(document.createElement(tag), more)
  const question = () => state?.questions.find((one) => one.number === shown)
  const written = (one, value) => {
    if (one.kind === 'choice') return one.choices[value]
    if (one.kind === 'point') return tr('{x}% from the left, {y}% from the top', {x: Math.round(100 * value[0]), y: Math.round(100 * value[1])})
    return fixed(value, one.digits) + one.unit
  }
  const touched = (value) => { guess = value; fault = ''; draw() }

  const controls = {
    number: (one) => {
      const [least, most, step] = one.span
      const out = make('div', {className: 'value'})
      const slide = make('input', {type: 'range', min: least, max: most, step, value: one.mine ?? one.start})
      slide.setAttribute('aria-label', tr('Your guess'))
      const tell = () => {
        out.textContent = written(one, Number(slide.value))
        slide.setAttribute('aria-valuetext', out.textContent)
        touched(Number(slide.value))
      }
      const by = (sign) => {
        const button = make('button', {type: 'button', textContent: sign < 0 ? '−' : '+'})
        button.setAttribute('aria-label', sign < 0 ? tr('Less') : tr('More'))
        button.addEventListener('click', () => { sign < 0 ? slide.stepDown() : slide.stepUp(); tell() })
        return button
      }
      slide.addEventListener('input', tell)
      const row = make('div', {className: 'slide'})
      row.append(by(-1), slide, by(1))
      control.append(out, row)
      tell()
    },
    choice: (one) => {
      const set = make('fieldset')
      set.setAttribute('aria-labelledby', 'asked')
      one.choices.forEach((words, k) => {
        const label = make('label', {className: 'choice'})
        const box = make('input', {type: 'radio', name: 'choice', checked: one.mine === k})
        box.addEventListener('change', () => touched(k))
        label.append(box, words)
        set.append(label)
      })
      control.append(set)
    },
    point: (one) => {
      const button = make('button', {type: 'button', className: 'picture'})
      const mark = make('i', {hidden: true})
      const heard = make('span', {className: 'unseen'})
      heard.setAttribute('aria-live', 'polite')
      const put = (x, y) => {
        const place = [x, y].map((v) => Math.min(1, Math.max(0, v)))
        Object.assign(mark.style, {left: `${100 * place[0]}%`, top: `${100 * place[1]}%`})
        mark.hidden = false
        heard.textContent = written(one, place)
        touched(place)
      }
      button.append(make('img', {src: path(`pictures/${one.number}`), alt: ''}), mark)
      button.setAttribute('aria-label', tr('The picture: touch a place, or move the mark with the arrow keys'))
      button.addEventListener('click', (event) => {
        if (!event.detail) { if (!guess) put(0.5, 0.5); return }  // by a key
        const box = button.getBoundingClientRect()
        put((event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height)
      })
      button.addEventListener('keydown', (event) => {
        const [x, y] = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1]}[event.key] ?? []
        if (x === undefined) return
        event.preventDefault()
        const [left, top] = guess ?? [0.5, 0.5]
        put(left + 0.02 * x, top + 0.02 * y)
      })
      control.append(button, heard)
      if (one.mine) put(...one.mine)
    },
  }

  // The run on the presenter's wall: where it is in the queue, its curve, its score.
  const doing = (own) => {
    if (own.stage === 'waiting')
      return own.ahead ? ntr('{n} run before yours. Leave this page open.', '{n} runs before yours. Leave this page open.', own.ahead) : tr('Your run is next.')
    if (own.stage === 'failed') return own.reason
    if (own.stage === 'done') return own.score
    return own.steps.length ? tr('Step {step} of {total}', {step: own.steps.at(-1), total: own.total}) : tr('Your run begins…')
  }
  const drawWall = () => {
    wall.hidden = !state.wall
    if (!state.wall) { wallFault = ''; return }
    const {own} = state.wall
    join.hidden = Boolean(own)
    about.textContent = tr('Each run is short: {about}.', {about: state.wall.about})
    const told = own ? `${own.title[0].toUpperCase()}${own.title.slice(1)}: ${doing(own)}` : wallFault
    if (run.textContent !== told) run.textContent = told
    curve.toggleAttribute('hidden', !(own?.steps.length > 1))
    if (!(own?.steps.length > 1)) return
    const sorted = [...own.curve].sort((a, b) => a - b), high = sorted.at(-1)
    const low = Math.max(sorted[0], high - 3 * (high - sorted[Math.floor(sorted.length / 10)]) || sorted[0])
    const last = own.stage === 'training' ? Math.max(own.total, own.steps.at(-1)) : own.steps.at(-1)
    const points = own.curve.map((v, k) => `${310 * own.steps[k] / last + 5},${145 - 140 * (Math.max(v, low) - low) / (high - low || 1)}`)
    curve.firstElementChild.setAttribute('points', points.join(' '))
    curve.setAttribute('aria-label', tr('The objective of your run, from {first} to {last}', {first: own.curve[0], last: own.curve.at(-1)}))
  }
  let wallFault = ''
  join.addEventListener('click', async () => {
    join.disabled = true
    try {
      const answer = await fetch(path('runs'), {method: 'POST'})
      wallFault = answer.ok ? '' : await answer.text()
    } catch { wallFault = tr('Not sent: no connection. Try again.') }
    join.disabled = false
    draw()
  })

  const draw = () => {
    const one = question()
    where.textContent = state.leads && !one ? state.title : ''
    page.hidden = !state.page
    if (state.page) page.href = new URL(`../${state.page}`, location.href).href
    drawWall()
    const k = state.questions.indexOf(one)
    turns.hidden = state.leads || state.questions.length < 2
    const [before, count, after] = turns.children
    count.textContent = tr('{k} of {n}', {k: k + 1, n: state.questions.length})
    before.disabled = k <= 0
    after.disabled = k >= state.questions.length - 1
    asked.textContent = one ? one.text : state.wall ? tr('Everyone trains') : tr('No question at the moment. Look at the screen.')
    ballot.hidden = !one || one.revealed
    send.disabled = guess === null
    send.textContent = one && one.mine !== null ? tr('Change my answer') : tr('Send')
    if (!one) said.textContent = ''
    else if (one.revealed) {
      const own = one.mine === null ? tr('You did not guess.') : tr('You guessed {choice}.', {choice: written(one, one.mine)})
      said.textContent = `${one.answer || tr('The model is being asked…')} ${own}`
    } else if (fault) said.textContent = fault
    else said.textContent = one.mine === null ? '' : tr('Sent: {choice}. Wait for the reveal; until then you can change it.', {choice: written(one, one.mine)})
  }
  const show = (number) => {
    const moved = shown !== number
    shown = number
    const one = question()
    const wanted = one && !one.revealed ? `${one.number}` : ''
    if (moved) fault = ''
    if (wanted !== laid) {
      laid = wanted
      guess = null
      control.replaceChildren()
      if (wanted) controls[one.kind](one)
    }
    draw()
    if (moved && one) asked.focus({preventScroll: true})  // a screen reader reads it
  }
  const turn = (by) => {
    const k = state.questions.indexOf(question()) + by
    show(state.questions[Math.max(0, Math.min(state.questions.length - 1, k))].number)
  }
  turns.children[0].addEventListener('click', () => turn(-1))
  turns.children[2].addEventListener('click', () => turn(1))

  ballot.addEventListener('submit', async (event) => {
    event.preventDefault()
    const one = question()
    if (!one || guess === null) return
    said.textContent = tr('Sending…')
    try {
      const answer = await fetch(path('votes'), {
        method: 'POST', headers: {'Content-Type': 'application/json'},
        body: JSON.stringify({number: one.number, value: guess}),
      })
      const now = state.questions.find((other) => other.number === one.number)  // news may have come
      if (answer.ok && now) now.mine = (await answer.json()).mine
      fault = answer.ok ? '' : await answer.text()
    } catch { fault = tr('Not sent: no connection. Try again.') }
    draw()
  })

  const over = () => {
    for (const part of [ballot, turns, page, wall]) part.hidden = true
    where.textContent = said.textContent = ''
    asked.textContent = tr('The lesson has ended. Nothing of it is kept.')
  }
  const listen = () => {
    const news = new EventSource(path('news'))
    news.onmessage = ({data}) => {
      state = JSON.parse(data)
      const last = state.questions.at(-1)?.number ?? null
      if (state.leads) show(state.present)
      else show(question() ? shown : last)
    }
    news.addEventListener('over', () => { news.close(); over() })
    news.onerror = async () => {
      if (news.readyState !== EventSource.CLOSED) return  // the browser tries again by itself
      try {
        const answer = await fetch(location.href, {method: 'HEAD'})
        if (answer.status === 404) { over(); return }
      } catch { /* the server may come back */ }
      setTimeout(listen, 5000)
    }
  }
  listen()
})()
