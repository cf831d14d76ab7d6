// Present mode and lessons: keys that step through the figures, where one is, and the figure that a
// link begins at. Loaded with every page, after page.js.
{
const KEYS = [
  ['→ space n', 'next figure'], ['← p', 'the one before'], ['Home', 'the first'],
  ['r', 'replay, or hold it'], ['?', 'these keys'], ['Esc', 'leave present mode'],
]
// Where keys have a meaning of their own, they keep it.
const TYPED = 'input, textarea, select, [contenteditable], [role=combobox], [role=listbox], [role=option], '
  + '[role=menu], [role=menuitem], [role=slider], [role=tab]'
const PRESSED = 'button, a, summary, [role=button]'

const word = (name) => new URLSearchParams(location.search).get(name)
const presenting = () => word('present') !== null && !['0', 'false'].includes(word('present'))

const marks = () => {
  const found = []
  everywhere((node) => { if (node.dataset?.step !== undefined && node.getClientRects().length) found.push(node) })
  return found.sort((one, other) => one.dataset.step - other.dataset.step)
}

if (presenting()) growTexts() // of upstream/text_size.js

let here = null  // the heading that was stepped to
let byHand = false  // whether the page was scrolled otherwise since

const nav = document.createElement('nav')
nav.className = 'steps'
nav.setAttribute('aria-label', 'Figures')
nav.innerHTML = `<p id="keys" hidden>${KEYS.map(([key, what]) => `<span><kbd>${key}</kbd> ${what}</span>`).join(' ')}</p>
  <button type="button" aria-label="Previous figure">‹</button><span class="at"></span>
  <button type="button" aria-label="Next figure">›</button>
  <button type="button" aria-label="Keys" aria-expanded="false" aria-controls="keys">?</button>`
const [before, after, ask] = nav.querySelectorAll('button')
const keys = nav.querySelector('p'), at = nav.querySelector('.at')

const unfold = (open) => {
  keys.hidden = !open
  ask.setAttribute('aria-expanded', String(open))
}

const show = (steps = marks()) => {
  nav.hidden = !steps.length
  const k = steps.indexOf(here)
  const told = k < 0 ? `${steps.length} figures` : `${k + 1} of ${steps.length}: ${here.textContent}`
  if (at.textContent !== told) at.textContent = told
  before.disabled = k <= 0
  after.disabled = k === steps.length - 1
}

// Figures are built as one comes near, and those above and below may grow: the place is held for a
// while, unless the visitor goes elsewhere.
let holding = 0
// The run bar stays above what scrolls and grows with what it has to say.
const uncover = (mark) => {
  let covered = 0
  everywhere((node) => {
    if (node.classList.contains('bar') && getComputedStyle(node).position === 'sticky') covered = node.offsetHeight
  })
  mark.style.scrollMarginTop = `${covered + 14}px`
}
const hold = (mark, times) => {
  const turn = ++holding
  let last = null
  const look = () => {
    if (turn !== holding || byHand || times-- <= 0) return
    const top = mark.getBoundingClientRect().top
    if (top === last) {
      uncover(mark)
      mark.scrollIntoView({block: 'start', behavior: 'instant'})
    }
    last = mark.getBoundingClientRect().top
    setTimeout(look, 250)
  }
  look()
}

// The address remembers the place, so that a page that comes back after a lost connection is there.
const go = (mark, behavior = 'smooth') => {
  if (here) delete here.dataset.here
  here = mark
  document.dispatchEvent(new CustomEvent('scant-step', {detail: Number(mark.dataset.step)}))
  if (presenting()) {
    mark.dataset.here = ''
    const address = new URL(location.href)
    address.searchParams.set('step', Number(mark.dataset.step) + 1)
    history.replaceState(history.state, '', address)
    show()
  }
  byHand = false
  uncover(mark)
  mark.scrollIntoView({block: 'start', behavior})
  mark.focus({preventScroll: true})
  hold(mark, behavior === 'instant' ? 60 : 16)
}

const step = (by) => {
  const steps = marks()
  if (!steps.length) return
  let k = steps.indexOf(here)
  if (byHand) k = steps.findLastIndex((mark) => mark.getBoundingClientRect().top < innerHeight / 3)
  go(steps[Math.max(0, Math.min(steps.length - 1, by === 0 ? 0 : k + by))])
}

const replay = () => {
  let button = null
  everywhere((node) => {
    if (node.tagName === 'BUTTON' && /^(Replay|Hold replay|Play on)$/.test(node.textContent.trim())
      && node.getClientRects().length) button = node
  })
  button?.click()
}

document.addEventListener('keydown', (event) => {
  if (!presenting() || event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return
  const path = event.composedPath().filter((node) => node instanceof Element)
  if (path.some((node) => node.matches(TYPED))) return
  const onButton = path.some((node) => node.matches(PRESSED))
  if (/^(ArrowUp|ArrowDown|End)$/.test(event.key)) byHand = true
  const act = {
    ArrowRight: () => step(1), PageDown: () => step(1), n: () => step(1),
    ArrowLeft: () => step(-1), PageUp: () => step(-1), p: () => step(-1),
    Home: () => step(0), r: replay, '?': () => unfold(keys.hidden),
    ' ': onButton ? null : () => step(event.shiftKey ? -1 : 1),
    Escape: () => {
      if (!keys.hidden) { unfold(false); return }
      const address = new URL(location.href)
      for (const name of ['present', 'step']) address.searchParams.delete(name)
      location.assign(address)
    },
  }[event.key]
  if (!act) return
  event.preventDefault()
  act()
})
// A page that goes along with a room's presenter (room.js).
let led = null
const follow = (step, until = performance.now() + 45000) => {
  if (step !== led || performance.now() > until) return
  const mark = marks().find((one) => Number(one.dataset.step) === step)
  if (!mark) setTimeout(follow, 250, step, until) // its figure may come a while after the page
  else if (mark !== here) go(mark)
}
document.addEventListener('scant-go', ({detail}) => { led = detail; follow(led) })
addEventListener('pointerdown', () => { holding += 1 }, {capture: true})
for (const name of ['wheel', 'touchmove']) addEventListener(name, () => { byHand = true }, {passive: true, capture: true})

before.addEventListener('click', () => step(-1))
after.addEventListener('click', () => step(1))
ask.addEventListener('click', () => unfold(keys.hidden))

// The figure that a link begins at may come a while after the page.
const begin = (wanted, until = performance.now() + 45000) => {
  if (here || byHand || performance.now() > until) return
  const mark = marks().find((one) => Number(one.dataset.step) + 1 === wanted)
  if (mark) go(mark, 'instant')
  else setTimeout(begin, 250, wanted, until)
}

addEventListener('DOMContentLoaded', () => {
  const wanted = Number(word('step'))
  if (wanted >= 1) begin(wanted)
  if (!presenting()) return
  document.body.append(nav)
  nav.hidden = true
  setInterval(show, 1500)
})
}
