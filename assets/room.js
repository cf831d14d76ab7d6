// The presenter's part of a room (scant_dashboard/room/card.py), or a page that goes along with one.
// Steps are exchanged with present.js: `scant-step` tells where one is, `scant-go` leads there.

export function render({model, el}) {
  if (model.follows) {
    follow(model.follows)
    return
  }
  const root = make('div', 'row'), dialog = make('dialog')
  const ask = pressed('Ask the room', () => { wanted = true; model.pressed += 1 })
  const way = pressed('', () => open())
  const count = make('span', 'count')
  count.setAttribute('role', 'status')
  const label = make('label'), box = make('input')
  box.type = 'checkbox'
  box.setAttribute('role', 'switch')
  label.append(box, ' Lead')
  label.title = 'Phones, and pages opened from them, step along with you'
  const end = pressed('End', () => { model.pressed += 1 })
  end.setAttribute('aria-label', 'End the room')
  root.append(ask, way, count, label, end)

  const qr = make('div', 'qr'), address = make('p', 'address'), warning = make('p', 'warning')
  const told = make('p', '', 'Phones on the same network: scan the code, or type the address. No names; nothing is kept.')
  const joined = make('p', 'count'), close = pressed('Close', () => dialog.close())
  qr.setAttribute('role', 'img')
  warning.setAttribute('role', 'alert')
  const words = make('div')
  words.append(make('h2', '', 'Ask the room'), address, told, warning, joined, close)
  dialog.append(qr, words)
  dialog.setAttribute('aria-label', 'Ask the room')
  dialog.addEventListener('keydown', (event) => event.stopPropagation()) // from present.js: Esc only closes this
  el.replaceChildren(root, dialog)

  let wanted = false // the way in is shown as soon as there is one
  const open = () => { if (!dialog.open) dialog.showModal() }
  const many = () => `${model.phones} ${model.phones === 1 ? 'phone' : 'phones'}`
  const draw = () => {
    const on = Boolean(model.code)
    ask.hidden = on
    for (const part of [way, count, label, end]) part.hidden = !on
    way.textContent = `Room ${model.code}`
    way.setAttribute('aria-label', `Room ${model.code}: show the address`)
    count.textContent = model.asked ? `${model.votes} of ${many()} answered` : many()
    joined.textContent = `${many()} so far`
    box.checked = model.leads
    const [host, path] = model.address.replace(/^https?:\/\//, '').split(/(?=\/room\/)/)
    address.replaceChildren(host, document.createElement('wbr'), path ?? '')
    warning.textContent = model.warning
    qr.setAttribute('aria-label', `QR code of ${model.address}`)
    if (qr.dataset.of !== model.qr) { qr.dataset.of = model.qr; qr.innerHTML = model.qr }
    if (!on) dialog.close()
    else if (wanted && model.qr) { wanted = false; open() }
  }
  const remember = () => { // so that the page, loaded anew, is still this room's
    const here = new URL(location.href)
    if (model.code) here.searchParams.set('room', model.code)
    else here.searchParams.delete('room')
    if (here.href !== location.href) history.replaceState(history.state, '', here)
  }
  box.addEventListener('change', () => { model.leads = box.checked })
  model.on(['code', 'address', 'qr', 'warning', 'phones', 'votes', 'asked', 'leads'], draw)
  model.on('code', remember)
  document.addEventListener('scant-step', ({detail}) => { if (detail !== model.step) model.step = detail })
  const step = Number(new URLSearchParams(location.search).get('step'))
  if (step >= 1) model.step = step - 1
  model.here = location.href.split(/[?#]/)[0]
  draw()
}

const follow = (code) => {
  let step = null
  const news = new EventSource(new URL(`./room/${code}/news?follow`, location.href))
  news.onmessage = ({data}) => {
    const told = JSON.parse(data)
    if (!told.leads || told.step === null || told.step === step) return
    step = told.step
    document.dispatchEvent(new CustomEvent('scant-go', {detail: step}))
  }
  news.addEventListener('over', () => news.close())
}
