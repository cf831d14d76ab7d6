// The presenter's part of a room (scant_dashboard/room/card.py), or a page that goes along with one.
// Steps are exchanged with present.js: `scant-step` tells where one is, `scant-go` leads there.

export function render({model, el}) {
  if (model.follows) {
    follow(model, el)
    return
  }
  const root = make('div', 'row'), dialog = make('dialog')
  const ask = pressed(tr('Ask the room'), () => { wanted = true; model.pressed += 1 })
  const way = pressed('', () => open())
  const count = make('span', 'count')
  count.setAttribute('role', 'status')
  const label = make('label'), box = make('input')
  box.type = 'checkbox'
  box.setAttribute('role', 'switch')
  label.append(box, ` ${tr('Lead')}`)
  label.title = tr('Phones, and pages opened from them, step along with you')
  const everyone = pressed(tr('Everyone trains'), () => choice.showModal())
  const end = pressed(tr('End'), () => { model.pressed += 1 })
  end.setAttribute('aria-label', tr('End the room'))
  root.append(ask, way, count, label, everyone, end)

  const qr = make('div', 'qr'), address = make('p', 'address'), warning = make('p', 'warning')
  const told = make('p', '', tr('Phones on the same network: scan the code, or type the address. No names; nothing is kept.'))
  const joined = make('p', 'count'), close = pressed(tr('Close'), () => dialog.close())
  qr.setAttribute('role', 'img')
  warning.setAttribute('role', 'alert')
  const words = make('div')
  words.append(make('h2', '', tr('Ask the room')), address, told, warning, joined, close)
  dialog.append(qr, words)
  dialog.setAttribute('aria-label', tr('Ask the room'))
  dialog.addEventListener('keydown', (event) => event.stopPropagation()) // from present.js: Esc only closes this
  const choice = wallChoice(model)
  el.replaceChildren(root, dialog, choice)

  let wanted = false // the way in is shown as soon as there is one
  const open = () => { if (!dialog.open) dialog.showModal() }
  const many = () => ntr('{n} phone', '{n} phones', model.phones)
  const draw = () => {
    const on = Boolean(model.code)
    ask.hidden = on
    for (const part of [way, count, label, end]) part.hidden = !on
    everyone.hidden = !on || !model.wall.choices
    everyone.textContent = model.wall_count ? tr('The wall: {runs}', {runs: model.wall_count}) : tr('Everyone trains')
    way.textContent = tr('Room {code}', {code: model.code})
    way.setAttribute('aria-label', tr('Room {code}: show the address', {code: model.code}))
    count.textContent = model.asked ? tr('{votes} of {phones} answered', {votes: model.votes, phones: many()}) : many()
    joined.textContent = tr('{phones} so far', {phones: many()})
    box.checked = model.leads
    const [host, path] = model.address.replace(/^https?:\/\//, '').split(/(?=\/room\/)/)
    address.replaceChildren(host, document.createElement('wbr'), path ?? '')
    warning.textContent = model.warning
    qr.setAttribute('aria-label', tr('QR code of {address}', {address: model.address}))
    if (qr.dataset.of !== model.qr) { qr.dataset.of = model.qr; qr.innerHTML = model.qr }
    if (!on) { dialog.close(); choice.close() }
    else if (wanted && model.qr) { wanted = false; open() }
  }
  const remember = () => { // so that the page, loaded anew, is still this room's
    const here = new URL(location.href)
    if (model.code) here.searchParams.set('room', model.code)
    else here.searchParams.delete('room')
    if (here.href !== location.href) history.replaceState(history.state, '', here)
  }
  box.addEventListener('change', () => { model.leads = box.checked })
  model.on(['code', 'address', 'qr', 'warning', 'phones', 'votes', 'asked', 'leads', 'wall', 'wall_count'], draw)
  model.on('code', remember)
  document.addEventListener('scant-step', ({detail}) => { if (detail !== model.step) model.step = detail })
  const step = Number(new URLSearchParams(location.search).get('step'))
  if (step >= 1) model.step = step - 1
  model.here = location.href.split(/[?#]/)[0]
  draw()
}

// What varies from run to run when everyone trains; the wall's figure is shown once it is there.
const wallChoice = (model) => {
  const {about, choices, usual, setting, low, high} = model.wall
  const dialog = make('dialog'), form = make('form')
  if (!choices) return dialog
  dialog.setAttribute('aria-label', tr('Everyone trains'))
  dialog.addEventListener('keydown', (event) => event.stopPropagation())
  const set = make('fieldset'), fault = make('p', 'warning')
  set.append(make('legend', '', tr('Differences between the runs')))
  const radio = (name, ...parts) => {
    const label = make('label'), box = make('input')
    Object.assign(box, {type: 'radio', name: 'varies', value: name, checked: name === usual})
    label.append(box, ...parts)
    set.append(label)
    return box
  }
  for (const [name, what] of choices) radio(name, `${name[0].toUpperCase()}${name.slice(1)}: ${what}`)
  const bound = (value, name) => {
    const box = Object.assign(make('input', 'bound'), {type: 'number', step: 'any', value})
    box.setAttribute('aria-label', name)
    box.addEventListener('input', () => { own.checked = true })
    return box
  }
  const words = setting.replaceAll('_', ' ')
  const from = bound(low, tr('Lowest {setting}', {setting: words})), to = bound(high, tr('Highest {setting}', {setting: words}))
  const own = radio(setting, `${words[0].toUpperCase()}${words.slice(1)}: ${tr('from')} `, from, ` ${tr('to')} `, to, ` (${tr('each run with another seed')})`)
  const start = make('button', 'main', tr('Start the wall')), down = pressed(tr('Take the wall down'), () => { send({name: ''}); dialog.close() })
  const close = pressed(tr('Close'), () => dialog.close()), row = make('div', 'row')
  let sent = 0
  const send = (request) => { model.wall_request = {...request, sent: ++sent} }
  fault.setAttribute('role', 'alert')
  row.append(start, down, close)
  form.append(make('h2', '', tr('Everyone trains')),
    make('p', '', tr('Every phone starts one run of its own: {about}. The first run is yours. Nothing is kept.', {about})), set, fault, row)
  dialog.append(form)
  form.addEventListener('submit', (event) => {
    event.preventDefault()
    send({name: set.querySelector(':checked').value, low: from.value, high: to.value})
  })
  const draw = () => {
    fault.textContent = model.wall_fault
    down.hidden = !model.wall_count
    start.textContent = model.wall_count ? tr('Restart the wall') : tr('Start the wall')
  }
  let up = 0
  model.on('wall_fault', draw)
  model.on('wall_count', () => {
    draw()
    const runs = parseInt(model.wall_count) || 0
    if (runs === 1 && up !== 1) { // a new wall
      dialog.close()
      document.dispatchEvent(new CustomEvent('scant-go', {detail: model.wall_step}))
    }
    up = runs
  })
  draw()
  return dialog
}

const follow = (model, el) => {
  const row = make('div', 'row'), own = pressed(tr('My own copy'), () => { model.follows = '' })
  let step = null
  const news = new EventSource(new URL(`./room/${model.follows}/news?follow`, location.href))
  row.append(make('span', '', tr('This page follows the presenter.')), own)
  row.setAttribute('role', 'note')
  row.hidden = true
  el.replaceChildren(row)
  const end = () => {
    news.close()
    row.hidden = true
  }
  news.onmessage = ({data}) => {
    const told = JSON.parse(data)
    row.hidden = !told.leads
    if (!told.leads || told.step === null || told.step === step) return
    step = told.step
    document.dispatchEvent(new CustomEvent('scant-go', {detail: step}))
  }
  news.addEventListener('over', end)
  model.on('follows', () => {
    if (model.follows) return
    end()
    const here = new URL(location.href) // so that the page, loaded anew, is still one's own
    here.searchParams.delete('room')
    history.replaceState(history.state, '', here)
  })
}
