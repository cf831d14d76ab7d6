// The labeling widget (scant_dashboard/controls/labeling_widget.py): one patch, a button for each class, and
// the next patches already here. A press goes to the server; the next patch shows when the server has
// it on disk.

const KEPT = 200  // cards held; the server counts on 150
const KEYED = 9  // classes with a key
const TYPED = ['listbox', 'option', 'menuitem', 'searchbox', 'slider', 'spinbutton', 'textbox']

export function render({model, el}) {
  const keyed = (key, words) => {
    const button = make('button')
    button.type = 'button'
    if (key) {
      button.append(make('kbd', '', key))
      button.setAttribute('aria-keyshortcuts', key)
    }
    button.append(make('span', '', words))
    return button
  }
  const held = new Map()  // cards by row, the latest last
  const gone = new Set()  // rows answered here that the queue may still name
  let bare = false  // whether what is on show still lacks its card
  let shown = null, turn = 0, waiting = null, pressed = 0
  let again = false, deciding = false  // whether what is on show is shown again, and for a decision
  let buttons = []

  const root = make('div', 'bench'), left = make('div'), right = make('div')
  const patch = make('div', 'patch'), why = make('p', 'why'), status = make('p', 'status')
  const choices = make('div', 'choices'), aside = make('div', 'aside')
  const named = make('label', 'name', tr('Your name')), name = make('input')
  const place = make('div', 'place'), said = make('div', 'unseen')
  const progress = make('div', 'progress'), bar = make('progress'), lines = make('div')
  const unsure = keyed('u', tr('Unsure')), skip = keyed('s', tr('Skip')), undo = keyed('z', tr('Undo'))
  const part = (title) => {
    const section = make('section'), head = make('h4', '', title), note = make('p', 'note'), list = make('ul', 'history')
    section.append(head, note, list)
    return {section, head, note, list, title}
  }
  const doubts = part(tr('Unsure')), disputes = part(tr('Disagreements')), past = part(tr('Labels given'))
  disputes.list.classList.add('wide')
  choices.setAttribute('role', 'group')
  choices.setAttribute('aria-label', tr('Class of this row'))
  bar.setAttribute('aria-label', tr('Labels given, of the budget'))
  said.setAttribute('aria-live', 'polite')
  aside.append(unsure, skip, undo)
  left.append(patch, why, choices, aside, status)
  name.maxLength = 60
  name.value = localStorage.getItem('scant_labeller') ?? 'me'
  named.append(name)
  progress.append(bar, lines)
  right.append(named, make('h4', '', tr('Progress')), progress, make('h4', '', tr('Where the patch lies')), place,
    disputes.section, doubts.section, past.section)
  root.append(left, right, said)
  el.replaceChildren(root)

  const tell = (words, bad = false) => {
    status.textContent = words
    status.className = bad ? 'status bad' : 'status'
  }
  const called = (row) => model.names[row] ?? tr('row {row}', {row: `${row}`})
  const capital = (text) => text[0].toUpperCase() + text.slice(1)
  const take = () => {
    for (const card of model.cards) {
      for (const part of ['image', 'thumb']) if (card[part]) {
        const image = new Image()
        image.alt = part === 'image' ? capital(called(card.row)) : tr('The whole picture')
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
  const vote = ({who, label}) => tr('{who} says {label}', {who, label})
  const words = (row) => {  // what is said under the patch
    const asked = model.queue.find((one) => one.row === row)
    const dispute = model.disputes.find((one) => one.row === row)
    const before = model.history.find((one) => one.row === row) ?? model.unsure.find((one) => one.row === row)
    if (deciding && dispute) {
      const given = dispute.given.map(vote).join(', ')
      const stands = dispute.decided
        ? tr('Decided: {label}.', {label: dispute.decided}) : tr('Your decision overrides both labels.')
      return `${capital(called(row))}: ${given}. ${stands}`
    }
    if (again && before) {
      const {label, who} = before
      return `${capital(called(row))}: ${tr('{label} by {who}. Press again to change it.', {label, who})}`
    }
    return capital(called(row)) + (asked ? `: ${asked.why}` : '')
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
      why.textContent = words(row)
      place.hidden = !card.thumb_here
      if (card.thumb_here) {
        const box = make('i')
        const [x, y, w, h] = card.box
        Object.assign(box.style, {left: `${100 * x}%`, top: `${100 * y}%`, width: `${100 * w}%`, height: `${100 * h}%`})
        place.style.aspectRatio = String(card.shape)
        place.style.maxWidth = `min(320px, ${240 * card.shape}px)`
        place.replaceChildren(card.thumb_here, box)
      }
    }
    const suggested = card ? model.queue.find((one) => one.row === row)?.suggest : undefined
    buttons.forEach((button, k) => {
      button.classList.toggle('suggested', k === suggested)
      if (k === suggested) button.setAttribute('aria-description', tr('the pre-label'))
      else button.removeAttribute('aria-description')
    })
    root.dataset.row = row ?? ''
    root.classList.toggle('deciding', deciding)
    enable()
  }
  const next = () => {
    again = deciding = false
    const one = model.queue.find((one) => !gone.has(one.row) && held.has(one.row))
    lay(one ? one.row : null)
  }
  const enable = () => {
    const none = !model.open || shown === null
    buttons.forEach((button) => { button.disabled = none })
    unsure.disabled = none
    skip.disabled = none
    undo.disabled = !model.open || !model.undoable
  }
  const label = () => {
    const names = model.classes
    if (names.join('\n') !== buttons.map((button) => button.title).join('\n')) {
      buttons = names.map((words, k) => {
        const button = keyed(k < KEYED ? String(k + 1) : '', words)
        button.title = words
        button.addEventListener('click', () => choose(k))
        return button
      })
      choices.replaceChildren(...buttons)
      choices.classList.toggle('four', names.length === 4)
      choices.classList.toggle('many', names.length > 4)
    }
    lay(shown)
  }
  // A patch to come back to, with what is said of it.
  const entry = (one, words, spoken, act) => {
    const item = make('li'), button = make('button'), card = held.get(one.row)
    button.type = 'button'
    button.setAttribute('aria-label', spoken)
    button.dataset.row = one.row
    if (card?.image) {
      const image = new Image()
      image.alt = ''
      image.src = card.image
      button.append(image)
    } else button.append(make('span', '', called(one.row)))
    for (const [text, name] of words) {
      const line = make('span', name, text)
      line.title = text
      button.append(line)
    }
    button.addEventListener('click', () => send(act, {row: one.row}))
    item.append(button)
    return item
  }
  const fill = (part, items, note = '', always = false) => {
    part.section.hidden = !items.length && !note && !always
    part.head.textContent = items.length ? `${part.title} (${items.length})` : part.title
    part.note.hidden = !note
    part.note.textContent = note
    // Who walks the list by keys stays where they are.
    const at = root.getRootNode().activeElement
    const row = part.list.contains(at) ? at.dataset.row : undefined
    part.list.replaceChildren(...items)
    if (row !== undefined) part.list.querySelector(`[data-row="${row}"]`)?.focus({preventScroll: true})
  }
  const remember = () => {
    const role = {imported: tr('from a file'), adjudicator: tr('decision')}
    fill(past, model.history.map((one) => entry(
      one, [[one.label, ''], [one.who, 'who'], ...(role[one.role] ? [[role[one.role], 'who']] : [])],
      tr('Change {patch}: {label}, by {who}', {...one, patch: called(one.row)}) + (role[one.role] ? `, ${role[one.role]}` : ''),
      one.role === 'adjudicator' ? 'decide' : 'again')), '', true)
    past.head.textContent = past.title
    fill(doubts, model.unsure.map((one) => entry(
      one, [[one.who, 'who']], tr('Look again at {patch}: unsure, by {who}', {...one, patch: called(one.row)}), 'again')))
    fill(disputes, model.disputes.map((one) => entry(
      one, [...one.given.map((each) => [`${each.label}: ${each.who}`, one.decided ? 'who' : '']),
        [one.decided ? tr('decided: {label}', {label: one.decided}) : tr('open'), one.decided ? '' : 'who']],
      tr('Decide {patch}: {given}', {patch: called(one.row), given: one.given.map(vote).join(', ')}) +
        (one.decided ? `; ${tr('decided: {label}', {label: one.decided})}` : ''),
      'decide')), model.agreement)
    enable()
  }
  const advance = () => {
    const {given = 0, budget = 0, lines: sentences = []} = model.progress
    bar.max = Math.max(1, budget)
    bar.value = Math.min(given, budget)
    lines.replaceChildren(...sentences.map((sentence) => make('p', '', sentence)))
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
  const give = (act, button, more = {}) => {
    if (shown === null || waiting !== null) return
    button.classList.add('pressed')
    send(act, {row: shown, deciding, ...more})
  }
  const choose = (value) => { if (buttons[value]) give('label', buttons[value], {value}) }
  const painted = () => requestAnimationFrame(() => {
    const took = performance.now() - pressed
    root.dataset.took = took.toFixed(1)
    root.dataset.turn = String(turn)
  })
  model.on('msg:custom', (message) => {
    const {data} = message
    const heard = data ?? message
    if (heard.show !== undefined) {
      gone.delete(heard.show)
      again = true
      deciding = false
      lay(heard.show)
      root.scrollIntoView({block: 'nearest'})
      said.textContent = tr('To be labeled: {patch}.', {patch: called(heard.show)})
      return
    }
    if (heard.turn !== waiting) return
    waiting = null
    root.dataset.heard = (performance.now() - pressed).toFixed(1)
    for (const button of [...buttons, unsure]) button.classList.remove('pressed')
    if (heard.error) { tell(heard.error, true); return }
    tell(heard.said)
    said.textContent = heard.said
    if (heard.gone !== undefined) gone.add(heard.gone)
    if (heard.back !== undefined) {
      gone.delete(heard.back)
      again = true
      deciding = Boolean(heard.deciding)
      lay(heard.back)  // its card may come in a moment
    } else if (heard.next) next()
    painted()
  })
  unsure.addEventListener('click', () => give('unsure', unsure))
  skip.addEventListener('click', () => {
    if (deciding) next()  // it stays to be decided
    else if (shown !== null) send('skip', {row: shown})
  })
  undo.addEventListener('click', () => send('undo'))
  name.addEventListener('keydown', (event) => { if (event.key === 'Enter') name.blur() })  // to the keys
  name.addEventListener('change', () => {
    localStorage.setItem('scant_labeller', who())
    model.send_msg({act: 'who', turn: 0, who: who()})
  })
  const keys = (event) => {
    if (event.repeat || event.ctrlKey || event.metaKey || event.altKey) return
    const at = event.composedPath()[0]
    if (at?.isContentEditable || ['INPUT', 'TEXTAREA', 'SELECT'].includes(at?.tagName)) return
    if (TYPED.includes(at?.getAttribute?.('role'))) return
    if (!el.isConnected || !root.offsetParent) return
    const box = root.getBoundingClientRect()
    if (box.bottom < 0 || box.top > innerHeight) return
    const key = event.key.toLowerCase()
    const other = {u: unsure, s: skip, z: undo}[key]
    const value = /^[1-9]$/.test(key) ? Number(key) - 1 : -1
    if (other) other.click()
    else if (buttons[value]) choose(value)
    else return
    event.preventDefault()
  }
  document.addEventListener('keydown', keys)
  model.on('remove', () => document.removeEventListener('keydown', keys))
  // Once all of one message has come; what is on show stays under the finger. Cards are taken at
  // once: by then the next may have come in their place.
  const soon = (act) => {
    let due = false
    return () => {
      if (!due) setTimeout(() => { due = false; act() }, 0)
      due = true
    }
  }
  const listing = soon(remember)
  model.on('cards', take)
  model.on(['cards', 'history', 'unsure', 'disputes', 'agreement'], listing)
  model.on('cards', soon(() => {
    if (shown === null) next()
    else if (bare) lay(shown)
  }))
  model.on('queue', soon(() => { if (shown === null) next() }))
  model.on('progress', soon(advance))
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
    advance()
    next()
    tell('')
  }))
  take()
  label()
  remember()
  advance()
  next()
  model.send_msg({act: 'ready', turn: 0, who: who()})
}
