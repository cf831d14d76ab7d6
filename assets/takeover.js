// Of a static page (scant_dashboard/static_page): what is touched asks for the live page, over which the
// static one lies until that is drawn. What was clicked, moved or typed meanwhile is repeated there.
(() => {
  const over = document.getElementById('still') // on a live page only
  const root = over ? over.shadowRoot : document
  const look = over ?? document.documentElement // bears the classes of the theme
  const KEY = 'scantTakeover'
  const LONGEST = 20_000 // ms that the static page stays for what does not come
  const words = (node) => node.textContent.trim()
  const named = (node) => {
    const said = node.closest('[aria-label]') ?? node.querySelector('[aria-label]')
    if (said) return said.getAttribute('aria-label')
    const text = words(node.querySelector('span') ?? node)
    return node.matches('.slider') ? text.replace(/:[^:]*$/, '') : text
  }
  const remember = (name) => {
    const secure = location.protocol === 'https:' ? ';secure' : ''
    document.cookie = `${name};path=/;max-age=31536000;samesite=lax${secure}`
  }

  // What is to be done on the live page: {kind, text, at, …} in order, a control's last state once.
  // Controls of one kind and text are told apart by their order.
  const kept = () => {
    try {
      const found = JSON.parse(sessionStorage[KEY] ?? 'null')
      return found?.path === location.pathname && Date.now() - found.time < LONGEST ? found : null
    } catch { return null }
  }
  const state = {todo: [], y: 0, ...(over ? kept() : null)}
  const keep = () => {
    Object.assign(state, {path: location.pathname, time: Date.now(), y: over ? over.scrollTop : scrollY})
    for (const shots of over ? [state.shots] : [shotsOf(), undefined])
      try { sessionStorage[KEY] = JSON.stringify({...state, shots}); return } catch { /* no room, or no storage: opens, forgets */ }
  }
  // What is seen of figures that were drawn here, for the cover, on which they are not.
  const shotsOf = () => [...root.querySelectorAll('.plot')].map((plot) => {
    const {top, bottom} = plot.getBoundingClientRect()
    return bottom > 0 && top < innerHeight && Figures.shot(plot)
  })
  const KINDS = {button: 'button[data-live], .theme', check: 'label.check, label.first', slider: 'label.slider', choice: 'label.choice', field: 'label.field:not(.choice)'}
  const alike = (kind, text) => [...root.querySelectorAll(KINDS[kind])].filter((one) => named(one) === text)
  // Figures that can be clicked or drawn in go by the heading above them, and their order under it.
  const figures = (nodes, is) => {
    let text = '', at = 0
    const found = []
    for (const node of nodes) {
      if (/^H[1-3]$/.test(node.tagName)) { text = words(node); at = 0 }
      else if (is(node)) found.push({node, text, at: at++})
    }
    return found
  }
  const pictures = () => figures(root.querySelectorAll('h1, h2, h3, .plot'), (node) => node.matches('.plot'))
  const mineOf = ({kind, text, at}) => kind === 'figure' ? pictures().find((one) => one.text === text && one.at === at)?.node : alike(kind, text)[at]
  const wants = (node, kind, more) => {
    const text = named(node), at = alike(kind, text).indexOf(node)
    const fold = node.closest('details.fold')
    const opens = fold && {kind: 'button', text: `${words(fold.querySelector('summary'))} +`, at: 0, opens: true}
    if (opens && !state.todo.some((one) => one.text === opens.text)) state.todo.unshift(opens)
    if (kind !== 'button') state.todo = state.todo.filter((one) => one.kind !== kind || one.text !== text || one.at !== at)
    state.todo.push({kind, text, at, ...more})
    goLive()
  }
  const say = (sentence, tone = 'live') => {
    const status = root.querySelector('[role=status]')
    if (!status) return
    status.textContent = sentence
    status.closest('.line').dataset.tone = tone
  }
  // Numbers and figures of the run before are no longer of what is shown.
  const begin = (button, begun = true) => {
    root.querySelector('main')?.classList.toggle('starting', begun)
    if (button) button.disabled = begun
    if (begun) say('starting…')
  }
  let going = Boolean(over)
  const goLive = (query = {}) => {
    keep()
    if (going) return
    going = true
    const to = new URL(location.href)
    for (const [name, value] of Object.entries({...query, live: 'over'})) to.searchParams.set(name, value)
    // Where the browser can, what is seen stays until the live page's cover is drawn.
    const hold = document.createElement('style')
    hold.textContent = '@view-transition { navigation: auto }'
    document.head.append(hold)
    location.replace(to)
    setTimeout(() => { going = false }, LONGEST)
  }

  // Train starts the run at once; the live page then opens on it.
  const train = async (button) => {
    const followed = new URLSearchParams(location.search).has('run') // of which the server's start knows nothing
    begin(button)
    if (over || state.todo.length || followed) { wants(button, 'button'); return }
    try {
      const answer = await fetch(`./${location.pathname.split('/').at(-1)}/start`, {method: 'POST'})
      const {run, refused} = await answer.json()
      if (run) goLive({run})
      else {
        begin(button, false)
        say(`not started: ${refused}`, 'bad')
      }
    } catch { // no answer of ours: the live page will say why
      wants(button, 'button')
    }
  }
  const press = (button) => {
    if (button.matches('.theme')) {
      const dark = look.classList.toggle('dark')
      remember(`scant_theme=${dark ? 'dark' : 'light'}`)
      if (over) wants(button, 'button')
    } else if (words(button) === 'Copy link') navigator.clipboard?.writeText(button.parentElement.querySelector('input').value)
    else if (words(button) === 'Train') train(button)
    else { say('opening the controls…'); wants(button, 'button') }
  }
  let pressed = false
  root.addEventListener('pointerdown', () => { pressed = true })
  for (const end of ['pointerup', 'pointercancel']) addEventListener(end, () => { pressed = false }, true)
  root.addEventListener('click', (event) => {
    const button = event.target.closest?.(KINDS.button), choice = event.target.closest?.(KINDS.choice)
    if (button) press(button)
    else if (choice) wants(choice, 'choice')
  })
  let gesture = null // of a pointer in a figure, in shares of its frame
  const follow = (event) => {
    const {left, top, width, height} = gesture.frame
    gesture.path.push([(event.clientX - left) / width, (event.clientY - top) / height])
  }
  const pictured = (plot) => [...plot.querySelectorAll('.frame')].map((one) => one.getBoundingClientRect()).find(({width}) => width)
  root.addEventListener('pointerdown', (event) => {
    const plot = event.button ? null : event.target.closest?.('.plot[data-acts]')
    const frame = plot && (over ? pictured(plot) : Figures.frame(plot))
    const within = frame && Math.abs(2 * (event.clientX - frame.left) / frame.width - 1) <= 1 && Math.abs(2 * (event.clientY - frame.top) / frame.height - 1) <= 1
    gesture = within ? {plot, frame, path: []} : null
    if (gesture) { event.preventDefault(); follow(event) }
  })
  addEventListener('pointermove', (event) => { if (gesture) follow(event) }, true)
  addEventListener('pointercancel', () => { gesture = null }, true) // a finger scrolls
  addEventListener('pointerup', (event) => {
    if (!gesture) return
    follow(event)
    const {plot, path} = gesture
    gesture = null
    const {text, at} = pictures().find(({node}) => node === plot)
    state.todo.push({kind: 'figure', text, at, path})
    say('opening the controls…')
    goLive()
  }, true)
  const changed = (event) => {
    const input = event.target, label = input.closest?.('label')
    if (!label || input.type === 'file') return
    if (input.type === 'checkbox') wants(label, 'check', {checked: input.checked})
    else if (input.type === 'range') wants(label, 'slider', {value: input.value})
    else if (!input.readOnly) wants(label, 'field', {value: input.value, from: input.selectionStart, to: input.selectionEnd})
  }
  root.addEventListener('input', changed)
  root.addEventListener('keyup', (event) => { if (event.target.matches?.('.field input')) changed(event) })
  root.addEventListener('focusin', (event) => { if (event.target.matches?.('.field:not(.choice) input')) changed(event) })

  // A file that is dropped or pasted goes along.
  const carry = (file) => {
    say('opening the controls…')
    const reader = new FileReader()
    reader.onload = () => {
      state.file = {name: file.name, type: file.type, data: reader.result}
      goLive()
      if (!kept()?.file) say('This file is large: drop it once more when the controls are open.')
    }
    reader.readAsDataURL(file)
  }
  const listening = new AbortController() // until the live page listens
  const on = (name, act) => addEventListener(name, act, {signal: listening.signal, capture: true})
  on('dragover', (event) => event.preventDefault())
  on('drop', (event) => {
    event.preventDefault()
    event.stopImmediatePropagation()
    const file = event.dataTransfer?.files[0]
    if (file) carry(file)
  })
  on('paste', (event) => {
    if (event.composedPath().some((node) => node.matches?.('input'))) return
    const table = event.clipboardData?.getData('text/plain') ?? ''
    const file = event.clipboardData?.files[0]
      ?? (table.includes('\t') && table.trim().includes('\n') ? new File([table], 'pasted.tsv', {type: 'text/tab-separated-values'}) : null)
    if (file) { event.stopImmediatePropagation(); carry(file) }
  })

  // Formulas are set once they are unfolded; links name this server.
  const load = (tag, attributes) => new Promise((done) => {
    const node = Object.assign(document.createElement(tag), attributes, {onload: done})
    ;(tag === 'link' && over ? root : document.head).append(node)
  })
  root.addEventListener('toggle', async (event) => {
    const formulas = [...event.target.querySelectorAll('[data-katex]')]
    if (!event.target.open || !formulas.length) return
    const from = formulas[0].dataset.katex
    await load('link', {rel: 'stylesheet', href: `${from}/katex.min.css`})
    if (typeof katex === 'undefined') await load('script', {src: `${from}/katex.min.js`})
    if (typeof renderMathInElement === 'undefined') await load('script', {src: `${from}/contrib/auto-render.min.js`})
    const delimiters = [{left: '$$', right: '$$', display: true}, {left: '$', right: '$', display: false}]
    for (const one of formulas) renderMathInElement(one, {delimiters})
  }, true)
  for (const field of root.querySelectorAll('input[value^="./"]')) field.value = new URL(field.value, location)
  if (!over) return

  // --- on the live page ---
  const plain = new URL(location.href)
  plain.searchParams.delete('live')
  history.replaceState(history.state, '', plain)
  for (const {kind, text, at, value, checked, from, to} of state.todo) {
    const input = mineOf({kind, text, at})?.querySelector('input')
    if (!input) continue
    if (input.closest('details')) input.closest('details').open = true
    if (value !== undefined) input.value = value
    if (checked !== undefined) input.checked = checked
    input.focus({preventScroll: true})
    if (kind === 'field') input.setSelectionRange(from, to)
  }
  const plots = root.querySelectorAll('.plot')
  state.shots?.forEach((src, i) => {
    if (!src || !plots[i]) return
    plots[i].dataset.drawn = ''
    plots[i].append(Object.assign(document.createElement('img'), {src, alt: ''}))
  })
  over.scrollTop = state.y
  if (state.todo.length || state.file) say('opening the controls…')
  else if (plain.searchParams.has('run')) begin([...root.querySelectorAll(KINDS.button)].find((one) => words(one) === 'Train'))

  const deep = function* (node = document.body) {
    for (const one of node.querySelectorAll('*')) {
      if (one === over) continue
      yield one
      if (one.shadowRoot) yield* deep(one.shadowRoot)
    }
  }
  // The live counterparts of our controls, by kind and name.
  const OPERABLE = {button: 'button', check: 'input[type=checkbox]', slider: 'input[type=range]', choice: '[role=combobox]', field: 'input, textarea'}
  const label = (node) => {
    const scope = node.getRootNode(), by = node.getAttribute('aria-labelledby')?.split(' ')[0]
    return node.getAttribute('aria-label') || (by && scope.getElementById?.(by)?.textContent) || node.labels?.[0]?.textContent
      || node.closest('.MuiFormControl-root')?.querySelector('label')?.textContent || node.textContent
  }
  const fits = (node, {kind, text}) => node.matches(OPERABLE[kind]) && node.getClientRects().length > 0 && (kind === 'button' ? label(node).trim() === text : label(node).trim().startsWith(text))
  const native = (node, property, value, event) => { // React hears of what is set past it
    Object.getOwnPropertyDescriptor(Object.getPrototypeOf(node), property).set.call(node, value)
    node.dispatchEvent(new Event(event, {bubbles: true}))
  }
  const drawings = (nodes) => { // a live figure's element, with what Bokeh knows of it
    const views = new Map([...Bokeh.index.query((view) => view.model.type === 'Figure')].map((view) => [view.el, view]))
    return figures(nodes, (node) => views.has(node) && node.getClientRects().length > 0).map((one) => ({...one, view: views.get(one.node)}))
  }
  const draw = (view, path) => {
    const canvas = view.canvas_view.events_el, origin = canvas.getBoundingClientRect(), frame = view.frame.bbox
    const point = (name, [across, down]) => canvas.dispatchEvent(new PointerEvent(name, {
      bubbles: true, composed: true, isPrimary: true, pointerId: 1, pointerType: 'mouse', buttons: name === 'pointerup' ? 0 : 1,
      clientX: origin.left + frame.left + across * frame.width, clientY: origin.top + frame.top + down * frame.height,
    }))
    canvas.setPointerCapture = canvas.releasePointerCapture = () => {} // there is no such pointer
    point('pointerdown', path[0])
    for (const one of path.slice(1, -1)) point('pointermove', one)
    point('pointerup', path.at(-1))
    delete canvas.setPointerCapture
    delete canvas.releasePointerCapture
  }
  const repeat = (node, {kind, value, checked, from, to, path}) => {
    if (kind === 'figure') { draw(drawings([node])[0].view, path); return }
    node.focus({preventScroll: true})
    if (kind === 'button' || kind === 'choice') node.click()
    else if (kind === 'check') { if (node.checked !== checked) node.click() }
    else if (kind === 'slider') native(node, 'value', value, 'change')
    else {
      if (node.value !== value) native(node, 'value', value, 'input')
      node.setSelectionRange?.(from, to)
    }
  }
  const place = (node) => node.getBoundingClientRect()
  const seen = (node) => { const box = place(node); return box.height > 0 && box.bottom > 64 && box.top < innerHeight }
  const since = Date.now()
  let others = [], wheel = 0
  addEventListener('wheel', () => { wheel = Date.now() }, {capture: true, passive: true})
  const wait = () => {
    const late = Date.now() - since > LONGEST
    if (!take(late)) setTimeout(wait, 100)
  }
  const take = (late) => {
    if (typeof Bokeh === 'undefined' || !Bokeh.documents.length) return late && leave([])
    const nodes = [...deep()]
    const main = nodes.find((one) => one.classList.contains('main-content'))
    if (!main || !nodes.some((one) => one.tagName === 'H1')) return late && leave([])
    // What the visitor looks at stays where it is: the control last touched, else a heading in view.
    for (const one of state.todo.filter(({opens}) => opens)) {
      const button = nodes.find((node) => fits(node, one))
      if (!button) continue
      button.click()
      state.todo = state.todo.filter((other) => other !== one)
    }
    const last = state.todo.at(-1), mine = last && mineOf(last)
    // A figure is built when its heading is near.
    const heads = [...root.querySelectorAll('h1, h2, h3')]
    const head = (last?.kind === 'figure' && heads.find((one) => words(one) === last.text)) || heads.find(seen)
    const plots = state.todo.some(({kind}) => kind === 'figure') ? drawings(nodes) : []
    const found = state.todo.map((one) => one.kind === 'figure'
      ? plots.find(({text, at, view}) => text === one.text && at === one.at && view.frame.bbox.width > 0)?.node
      : nodes.filter((node) => fits(node, one))[one.at])
    const [here, there] = mine && seen(mine) && found.at(-1) ? [mine, found.at(-1).closest('.MuiFormControl-root') ?? found.at(-1)]
      : [head, head && nodes.find((one) => one.tagName === head.tagName && words(one) === words(head))]
    if (here && there) main.scrollTo({top: over.scrollTop < 8 ? 0 : main.scrollTop + place(there).top - place(here).top, behavior: 'instant'})
    const building = nodes.some((one) => one.classList.contains('building') && seen(one))
    const ready = found.every((node) => node && !node.disabled) && !building && Bokeh.documents.every((doc) => doc.is_idle)
    return (late || ready) && !pressed && Date.now() - wheel > 300 && leave(found)
  }
  const leave = (found) => {
    listening.abort()
    for (const one of others) one.style.visibility = ''
    const {todo, file} = state
    over.remove()
    try { sessionStorage.removeItem(KEY) } catch { /* no storage */ }
    todo.forEach((one, i) => { if (found[i]) repeat(found[i], one) })
    if (file) {
      const carrier = new DataTransfer()
      const bytes = Uint8Array.from(atob(file.data.split(',')[1]), (char) => char.charCodeAt(0))
      carrier.items.add(new File([bytes], file.name, {type: file.type}))
      document.body.dispatchEvent(new DragEvent('drop', {dataTransfer: carrier, bubbles: true, cancelable: true}))
    }
    return true
  }
  addEventListener('DOMContentLoaded', () => {
    others = [...document.body.children].filter((one) => one !== over)
    for (const one of others) one.style.visibility = 'hidden' // until it is whole
    wait()
  })
})()
