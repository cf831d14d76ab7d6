// Of a run's page without a session: the figure that a lesson begins at, and, while the run goes on,
// what has changed: it comes as parts, which take the places of the former.
(() => {
  const {from, at: first} = document.currentScript.dataset
  let at = first, source, ended = false

  // Elements stay where they are of the same kind: a live region is heard, and nothing flickers.
  const become = (old, now) => {
    if (old.isEqualNode(now)) return
    const one = old.nodeType === now.nodeType && old.nodeName === now.nodeName
    if (!one || ['STYLE', 'TEMPLATE'].includes(old.nodeName)) { old.replaceWith(now); return }
    if (old.nodeType !== Node.ELEMENT_NODE) { old.data = now.data; return }
    for (const {name} of [...old.attributes])
      if (!now.hasAttribute(name) && !(name === 'open' && old.nodeName === 'DETAILS')) old.removeAttribute(name)
    for (const {name, value} of now.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value)
    const [was, is] = [[...old.childNodes], [...now.childNodes]]
    is.forEach((node, i) => { if (i < was.length) become(was[i], node); else old.append(node) })
    was.slice(is.length).forEach((node) => node.remove())
  }
  const say = (words) => {
    const status = document.querySelector('[role=status]')
    if (status) status.textContent = words
  }
  const told = ({data, lastEventId}) => {
    const {title, parts} = JSON.parse(data)
    const made = document.createElement('template')
    for (const [place, html] of Object.entries(parts)) {
      const old = document.querySelector(place)
      made.innerHTML = html
      if (old) become(old, made.content.firstElementChild)
    }
    document.title = title
    at = lastEventId
  }
  const end = () => {
    source.close()
    ended = true
  }
  const open = () => {
    source = new EventSource(`./follow?${from}&at=${at}`)
    source.addEventListener('parts', told)
    source.addEventListener('end', end)
    source.addEventListener('refused', ({data}) => { end(); say(data) })
    source.onerror = () => { // the browser tries again by itself, unless the answer was no stream
      if (source?.readyState !== EventSource.CLOSED) return
      source = null
      setTimeout(look, 5000 * (1 + Math.random()))
    }
  }
  // A browser has six connections to a server: a page that nobody sees needs none.
  const look = () => {
    if (ended || Boolean(source) === !document.hidden) return
    if (!document.hidden) { open(); return }
    source.close()
    source = null
  }
  if (first) {
    document.addEventListener('visibilitychange', look)
    look()
  }

  const step = new URLSearchParams(location.search).get('step')
  const mark = document.querySelector(`[data-step="${Number(step) - 1}"]`)
  if (step && mark) {
    const bars = [...document.querySelectorAll('.bar')].filter((bar) => getComputedStyle(bar).position === 'sticky')
    mark.style.scrollMarginTop = `${bars.reduce((sum, bar) => sum + bar.offsetHeight, 14)}px`
    mark.scrollIntoView({behavior: 'instant'})
    mark.focus({preventScroll: true})
  }
})()
