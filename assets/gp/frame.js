// The frame of a page that is never live: its language and theme, and formulas once they are unfolded.

const keep = (name, value) => {
  const secure = location.protocol === 'https:' ? ';secure' : ''
  document.cookie = `${name}=${value};path=/;max-age=31536000;samesite=lax${secure}`
}
if (new URLSearchParams(location.search).has('lang')) keep('scant_language', document.documentElement.lang)
addEventListener('click', (event) => {
  if (!event.target.closest?.('button.theme')) return
  const dark = document.documentElement.classList.toggle('dark')
  keep('scant_theme', dark ? 'dark' : 'light')
})

const load = (tag, attributes) => new Promise((done) => {
  document.head.append(Object.assign(document.createElement(tag), attributes, {onload: done}))
})
document.addEventListener('toggle', async ({target}) => {
  const formulas = [...target.querySelectorAll('[data-katex]:not([data-set])')]
  if (!target.open || !formulas.length) return
  const from = formulas[0].dataset.katex
  for (const one of formulas) one.dataset.set = ''
  await load('link', {rel: 'stylesheet', href: `${from}/katex.min.css`})
  await load('script', {src: `${from}/katex.min.js`})
  await load('script', {src: `${from}/contrib/auto-render.min.js`})
  const delimiters = [{left: '$$', right: '$$', display: true}, {left: '$', right: '$', display: false}]
  for (const one of formulas) renderMathInElement(one, {delimiters})
}, true)
