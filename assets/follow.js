// Of a run's page without a session: the figure that a lesson begins at, and, while the run goes on,
// what has changed: it comes as parts, which take the places of the former.
(() => {
  const {from, at: first} = document.currentScript.dataset
  let at = first, source, ended = false

  const say = (words) => {
    const status = document.querySelector('[role=status]')
    if (status) status.textContent = words
  }
  const told = ({data, lastEventId}) => {
    const {title, parts} = JSON.parse(data)
    Figures.put(parts)
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
