// Of a static page: what is touched asks for the live page, over which the static one lies until
// that is drawn; then the click is repeated on it.
(() => {
  const over = document.getElementById('still') // on a live page only
  const root = over ? over.shadowRoot : document
  const KEY = 'scantTakeover'
  const read = () => { try { return JSON.parse(sessionStorage[KEY] ?? 'null') } catch { return null } }
  const write = (state) => { try { sessionStorage[KEY] = JSON.stringify(state) } catch { /* no storage */ } }
  const words = (node) => node.textContent.trim()

  // Buttons of one text are told apart by their order, and fields by their label.
  const name = (node) => {
    const kind = node.tagName === 'BUTTON' ? 'button' : 'field'
    const text = kind === 'button' ? words(node) : words(node.querySelector('span') ?? node)
    const same = [...root.querySelectorAll('[data-live]')].filter((one) => one.tagName === node.tagName && words(one) === words(node))
    return {kind, text, at: same.indexOf(node)}
  }
  const answer = () => {
    const status = root.querySelector('[role=status]')
    if (status) status.textContent = 'opening the controls…'
  }
  const touched = (event) => {
    const node = event.target.closest?.('[data-live]')
    if (!node) return
    event.preventDefault()
    answer()
    const state = {...read(), y: over ? over.scrollTop : scrollY, wanted: name(node), at: Date.now()}
    write(state)
    if (over) return
    const to = new URL(location.href)
    to.searchParams.set('live', '1')
    location.replace(to)
  }
  root.addEventListener('click', touched)
  root.addEventListener('focusin', (event) => { if (event.target.tagName === 'INPUT') touched(event) })
  if (!over) return

  // --- on the live page ---
  const state = read()
  if (state) over.scrollTop = state.y
  if (state?.wanted) answer()
  const plain = new URL(location.href)
  plain.searchParams.delete('live')
  history.replaceState(null, '', plain)

  const deep = function* (node = document.body) {
    for (const one of node.querySelectorAll('*')) {
      if (one === over) continue
      yield one
      if (one.shadowRoot) yield* deep(one.shadowRoot)
    }
  }
  const repeat = ({kind, text, at}) => {
    const found = [...deep()].filter((one) => kind === 'button'
      ? one.tagName === 'BUTTON' && words(one) === text
      : one.tagName === 'LABEL' && words(one) === text)
    const one = found[at] ?? found[0]
    if (!one) return
    if (kind === 'button') one.click()
    else (one.control ?? one.parentElement?.querySelector('input, [role=combobox]') ?? one).focus()
  }
  const drawn = () => {
    if (typeof Bokeh === 'undefined' || !Bokeh.documents.length) return false
    if (!Bokeh.documents.every((doc) => doc.is_idle)) return false
    return [...deep()].some((one) => one.tagName === 'H1')
  }
  const since = Date.now()
  const look = () => {
    if (!drawn() && Date.now() - since < 30_000) { setTimeout(look, 50); return }
    const main = document.querySelector('.main-content') ?? [...deep()].find((one) => one.classList.contains('main-content'))
    if (main) main.scrollTop = over.scrollTop
    const wanted = read()?.wanted
    over.remove()
    try { sessionStorage.removeItem(KEY) } catch { /* no storage */ }
    if (wanted) setTimeout(() => repeat(wanted), 0)
  }
  look()
})()
