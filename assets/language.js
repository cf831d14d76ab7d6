// A link to the page in another language keeps the rest of the address, such as the run.
addEventListener('click', (event) => {
  const link = event.composedPath().find((node) => node.hreflang)
  if (!link) return
  event.preventDefault()
  const to = new URL(location.href)
  to.searchParams.set('lang', link.hreflang)
  location.assign(to)
})
