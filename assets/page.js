// Loaded with every page: lets nothing that a visitor does early be lost, takes the spinner away,
// keeps the theme, holds the keys of present mode.

// Until the server hears that the document is ready it takes every change for one that went out
// with the page, and answers nothing. So what a visitor does on a page that is still being built
// waits for that word and follows it, in order.
const session = Bokeh.require('client/session').ClientSession.prototype
const send = session._document_changed
session._document_changed = function (event) {
  if (this.early === undefined) this.early = []
  if (this.early === null) { send.call(this, event); return }
  if (event.msg_data?.event_name !== 'document_ready') { this.early.push(event); return }
  const early = this.early
  this.early = null
  for (const each of [event, ...early]) send.call(this, each)
}

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

// The theme goes with the visitor from page to page.
addEventListener('click', () => setTimeout(() => {
  let dark = false
  everywhere((node) => { dark ||= node.classList.contains('mui-dark') })
  document.cookie = `scant_theme=${dark ? 'dark' : 'light'};path=/;max-age=31536000;samesite=lax`
}, 250))

// Arrows, space and Page keys step through the figures; Escape leaves present mode.
const marks = () => {
  const found = []
  everywhere((node) => { if (node.dataset?.step !== undefined && node.getClientRects().length) found.push(node) })
  return found.sort((one, other) => one.dataset.step - other.dataset.step)
}
let at = -1
document.addEventListener('keydown', (event) => {
  if (!new URLSearchParams(location.search).has('present')) return
  const target = event.composedPath()[0]
  if (/^(INPUT|TEXTAREA|SELECT|BUTTON)$/.test(target.tagName)) return
  const forward = ['ArrowRight', 'PageDown', ' ', 'n'].includes(event.key)
  const back = ['ArrowLeft', 'PageUp', 'p'].includes(event.key)
  if (event.key === 'Escape') {
    const address = new URL(location.href)
    address.searchParams.delete('present')
    location.assign(address)
  }
  if (!forward && !back) return
  event.preventDefault()
  const steps = marks()
  if (!steps.length) return
  at = Math.max(0, Math.min(steps.length - 1, at + (forward ? 1 : -1)))
  steps[at].scrollIntoView({block: 'start', behavior: 'smooth'})
  steps[at].focus({preventScroll: true})
})
