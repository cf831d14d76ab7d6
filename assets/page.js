// Loaded with every page: takes the spinner away, keeps the theme. (The keys of present mode are in present.js.)

// The newest points of a curve that many watch, told to all browsers at once by
// scant_dashboard/live/broadcast.py: they are drawn after the curve until they have become part of it.
const newest = (doc) => doc.on_message('scant_news', (told) => {
  const [curve, news, extent] = ['curve', 'news', 'extent'].map((name) => doc.get_model_by_name(name))
  if (!curve || !news || !extent) return
  const show = (source, data) => source.setv({data}, {sync: false})
  if (!news.heard) {
    news.heard = true
    const forget = () => show(news, {step: [], elbo: [], score: []})
    curve.connect(curve.streaming, forget)
    curve.connect(curve.properties.data.change, forget)
  }
  const drawn = curve.data.step.length - 1
  if (drawn < 0) return
  const fresh = told.step.findIndex((step) => step > curve.data.step[drawn])
  if (fresh < 0) return
  const joined = (name) => [curve.data[name][drawn], ...told[name].slice(fresh).map((v) => v ?? NaN)]
  const [elbo, score] = [joined('elbo'), joined('score')]
  show(news, {step: joined('step'), elbo, score})
  const top = Math.max(...[...elbo, ...score, extent.data.y[1]].filter(Number.isFinite))
  show(extent, {x: [extent.data.x[0], told.step.at(-1)], y: [extent.data.y[0], top]})
})
const listen = () => Bokeh.documents.length ? Bokeh.documents.forEach(newest) : setTimeout(listen, 100)
listen()

// A page's websocket is taken from the browser only that opened the page, which the server knows by
// a cookie, and while the page's session lasts. A page that came to rest in between, or lost its
// cookie to another that was opened at the same time, is loaded anew; twice, and then it says why.
const anew = async () => {
  let tries = 2
  try {
    const now = Date.now()
    const recent = JSON.parse(sessionStorage.scantTries ?? '[]').filter((at) => now - at < 60_000)
    sessionStorage.scantTries = JSON.stringify([...recent, now])
    tries = recent.length
  } catch { /* no storage where cookies are refused */ }
  const pause = (ms) => new Promise((done) => setTimeout(done, ms))
  for (let wait = 500; tries < 2; wait = 700) {
    await pause(wait)
    try { // the server may be on its way up
      await fetch('./healthz', {cache: 'no-store'})
      location.reload()
      return
    } catch { /* not yet */ }
  }
  const bar = document.createElement('div')
  bar.className = 'lost'
  bar.setAttribute('role', 'alert')
  bar.textContent = tr('This page cannot connect to its server. The server recognizes your browser by a cookie: allow cookies for this site, then reload the page.')
  document.body.append(bar)
}
document.addEventListener('scant-refused', anew) // of upstream/refused_connection.js

const everywhere = (visit, root = document) => {
  for (const node of root.querySelectorAll('*')) {
    visit(node)
    if (node.shadowRoot) everywhere(visit, node.shadowRoot)
  }
}

// The stock loader waits for every plot, also for those far below; we wait for the heading.
const unveil = () => {
  let painted = false
  everywhere((node) => { painted ||= node.tagName === 'H1' })
  const loader = document.getElementById('loader')
  if (painted && loader) loader.style.visibility = 'hidden'
  else setTimeout(unveil, 100)
}
addEventListener('DOMContentLoaded', () => setTimeout(unveil, 200))

// The language of the address goes with the visitor from page to page.
if (new URLSearchParams(location.search).has('lang'))
  document.cookie = `scant_language=${document.documentElement.lang};path=/;max-age=31536000;samesite=lax${location.protocol === 'https:' ? ';secure' : ''}`

// The theme goes with the visitor from page to page.
addEventListener('click', () => setTimeout(() => {
  let dark = false
  everywhere((node) => { dark ||= node.classList.contains('mui-dark') })
  const secure = location.protocol === 'https:' ? ';secure' : ''
  document.cookie = `scant_theme=${dark ? 'dark' : 'light'};path=/;max-age=31536000;samesite=lax${secure}`
}, 250))
