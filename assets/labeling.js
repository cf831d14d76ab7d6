// The labeling widget (dashboard/controls/labeling_widget.py): one patch, two buttons, and the next patches
// already here. A press goes to the server; the next patch shows when the server has it on disk.

const KEPT = 200  // cards held; the server counts on 150

export function render({model, el}) {
  const keyed = (key, words, name) => {
    const button = make('button', name)
    button.type = 'button'
    button.append(make('kbd', '', key), words)
    return button
  }
  const held = new Map()  // cards by row, the latest last
  const gone = new Set()  // rows answered here that the queue may still name
  let bare = false  // whether what is on show still lacks its card
  let shown = null, again = false, turn = 0, waiting = null, pressed = 0

  const root = make('div', 'bench'), left = make('div'), right = make('div')
  const patch = make('div', 'patch'), why = make('p', 'why'), status = make('p', 'status')
  const choices = make('div', 'choices'), aside = make('div', 'aside')
  const named = make('label', 'name', 'Your name'), name = make('input')
  const place = make('div', 'place'), past = make('ul', 'history'), said = make('div', 'unseen')
  const buttons = [0, 1].map((k) => keyed(String(k + 1), '', ''))
  const skip = keyed('s', 'Skip'), undo = keyed('u', 'Undo')
  said.setAttribute('aria-live', 'polite')
  choices.append(...buttons)
  aside.append(skip, undo)
  left.append(patch, why, choices, aside, status)
  name.maxLength = 60
  name.value = localStorage.getItem('scant_labeller') ?? 'me'
  named.append(name)
  right.append(named, make('h4', '', 'Where it lies'), place, make('h4', '', 'Labels given'), past)
  root.append(left, right, said)
  el.replaceChildren(root)

  const tell = (words, bad = false) => {
    status.textContent = words
    status.className = bad ? 'status bad' : 'status'
  }
  const take = () => {
    for (const card of model.cards) {
      for (const part of ['image', 'thumb']) if (card[part]) {
        const image = new Image()
        image.alt = part === 'image' ? `Patch ${card.row}` : 'The whole picture'
        image.src = card[part]
        image.decode?.().catch(() => {})  // now, not when it is to be seen
        card[`${part}_here`] = image
      }
      held.delete(card.row)
      held.set(card.row, card)
    }
    for (const row of held.keys()) {
      if (held.size <= KEPT) break
      if (row !== shown) held.delete(row)
    }
  }
  const features = (card) => {
    const words = make('div', 'words'), list = make('dl')
    for (const [name, value] of card.features) list.append(make('dt', '', name), make('dd', '', value))
    words.append(list)
    return words
  }
  const lay = (row) => {
    shown = row
    const card = row === null ? null : held.get(row)
    bare = row !== null && !card
    if (!card) {
      patch.replaceChildren(make('div', 'words', model.idle))
      why.textContent = ''
      place.hidden = true
    } else {
      patch.replaceChildren(card.image_here ?? features(card))
      const asked = model.queue.find((one) => one.row === row)
      const before = model.history.find((one) => one.row === row)
      why.textContent = again && before ? `Patch ${row}: ${before.label} by ${before.who}. Press again to change it.`
        : `Patch ${row}: ${asked?.why ?? ''}`
      place.hidden = !card.thumb_here
      if (card.thumb_here) {
        const box = make('i')
        const [x, y, w, h] = card.box
        Object.assign(box.style, {left: `${100 * x}%`, top: `${100 * y}%`, width: `${100 * w}%`, height: `${100 * h}%`})
        place.style.aspectRatio = String(card.shape)
        place.replaceChildren(card.thumb_here, box)
      }
    }
    root.dataset.row = row ?? ''
    enable()
  }
  const next = () => {
    again = false
    const one = model.queue.find((one) => !gone.has(one.row) && held.has(one.row))
    lay(one ? one.row : null)
  }
  const enable = () => {
    buttons.forEach((button) => { button.disabled = !model.open || shown === null })
    skip.disabled = !model.open || shown === null
    undo.disabled = !model.open || !model.undoable
  }
  const label = () => {
    buttons.forEach((button, k) => { button.lastChild.textContent = model.classes[k] ?? '' })
    lay(shown)
  }
  const remember = () => {
    past.replaceChildren(...model.history.map((one) => {
      const item = make('li'), button = make('button'), card = held.get(one.row)
      button.type = 'button'
      button.setAttribute('aria-label', `Change patch ${one.row}: ${one.label}, by ${one.who}`)
      if (card?.image) {
        const image = new Image()
        image.alt = ''
        image.src = card.image
        button.append(image)
      }
      button.append(make('span', '', one.label), make('span', 'who', card?.image ? one.who : `${one.row}, ${one.who}`))
      button.addEventListener('click', () => send('again', {row: one.row}))
      item.append(button)
      return item
    }))
    enable()
  }
  const who = () => name.value.trim() || 'me'
  const send = (act, more = {}) => {
    if (waiting !== null || !model.open) return
    turn += 1
    waiting = turn
    pressed = performance.now()
    tell('saving…')
    model.send_msg({act, turn, who: who(), ...more})
  }
  const choose = (value) => {
    if (shown === null || waiting !== null) return
    buttons[value].classList.add('pressed')
    send('label', {row: shown, value})
  }
  const painted = () => requestAnimationFrame(() => {
    const took = performance.now() - pressed
    root.dataset.took = took.toFixed(1)
    root.dataset.turn = String(turn)
  })
  model.on('msg:custom', (message) => {
    const {data} = message
    const heard = data ?? message
    if (heard.turn !== waiting) return
    waiting = null
    root.dataset.heard = (performance.now() - pressed).toFixed(1)
    buttons.forEach((button) => button.classList.remove('pressed'))
    if (heard.error) { tell(heard.error, true); return }
    tell(heard.said)
    said.textContent = heard.said
    if (heard.gone !== undefined) gone.add(heard.gone)
    if (heard.back !== undefined) {
      gone.delete(heard.back)
      again = true
      lay(heard.back)  // its card may come in a moment
    } else if (heard.next) next()
    painted()
  })
  buttons.forEach((button, value) => button.addEventListener('click', () => choose(value)))
  skip.addEventListener('click', () => { if (shown !== null) send('skip', {row: shown}) })
  undo.addEventListener('click', () => send('undo'))
  name.addEventListener('change', () => {
    localStorage.setItem('scant_labeller', who())
    model.send_msg({act: 'who', turn: 0, who: who()})
  })
  const keys = (event) => {
    if (event.repeat || event.ctrlKey || event.metaKey || event.altKey) return
    const at = event.composedPath()[0]
    if (at?.isContentEditable || ['INPUT', 'TEXTAREA', 'SELECT'].includes(at?.tagName)) return
    if (!el.isConnected || !root.offsetParent) return
    const box = root.getBoundingClientRect()
    if (box.bottom < 0 || box.top > innerHeight) return
    const act = {1: () => choose(0), 2: () => choose(1), s: () => skip.click(), u: () => undo.click()}[event.key]
    if (act) { act(); event.preventDefault() }
  }
  document.addEventListener('keydown', keys)
  model.on('remove', () => document.removeEventListener('keydown', keys))
  // Once all of one message has come; what is on show stays under the finger. Cards are taken at
  // once: by then the next may have come in their place.
  const soon = (act) => () => setTimeout(act, 0)
  model.on('cards', take)
  model.on('cards', soon(() => {
    remember()
    if (shown === null) next()
    else if (bare) lay(shown)
  }))
  model.on('queue', soon(() => { if (shown === null) next() }))
  model.on('history', soon(remember))
  model.on('classes', soon(label))
  model.on(['open', 'undoable', 'idle'], soon(() => { if (shown === null) next(); enable() }))
  model.on('session', () => {
    held.clear()
    gone.clear()
    waiting = null
    take()
  })
  model.on('session', soon(() => {
    label()
    remember()
    next()
    tell('')
  }))
  take()
  label()
  remember()
  next()
  model.send_msg({act: 'ready', turn: 0, who: who()})
}
