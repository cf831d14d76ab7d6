// Keys of present mode: arrows, space and Page keys step through the figures; Escape leaves it.
if (window.scantKeys) return
window.scantKeys = true
const marks = () => {
  const found = []
  const walk = (node) => {
    for (const child of node.querySelectorAll('*')) {
      if (child.dataset && child.dataset.step !== undefined) found.push(child)
      if (child.shadowRoot) walk(child.shadowRoot)
    }
  }
  walk(document)
  const seen = found.filter((mark) => mark.getClientRects().length)
  return seen.sort((a, b) => a.dataset.step - b.dataset.step)
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
