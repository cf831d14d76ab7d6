// Present mode and lessons: keys that step through the figures, where one is, and the figure that a
// link begins at. Loaded with every page, after page.js.
{
const KEYS = [
  ['→ space n', tr('next figure')], ['← p', tr('previous figure')], ['Home', tr('first figure')],
  ['t', tr('train')], ['r', tr('replay, or pause it')], ['g', tr('reveal a guess')], ['b', tr('blank screen')],
  ['s', tr('notes in a separate window')], ['?', tr('list of keys')], ['Esc', tr('leave present mode')],
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

// On a projector one figure fills the screen: all others are hidden, and its plots share the height
// that is left.
const LEAST = 320, FOOT = 64 // pixels of a plot, and below the figure
const holder = (node, name) => {
  for (; node; node = node.parentNode ?? node.host) if (node.classList?.contains(name)) return node
  return null
}
const stage = (mark) => {
  const shown = holder(mark, 'figure')
  everywhere((node) => {
    if (node.classList.contains('study')) node.classList.add('staged')
    if (!node.classList.contains('figure')) return
    node.classList.toggle('off', node !== shown)
    if (node === shown) node.getRootNode().host?.classList.add('alone')
  })
  return shown
}
const plotsOf = (figure) => [...Bokeh.index.query((view) => view.model.type === 'Figure')]
  .map(({model, el}) => ({model, box: el}))
  .filter(({box}) => box.getClientRects().length && holder(box, 'figure') === figure)
// Dots and lines grow with the type, once.
const BOLD = 1.8, bold = new WeakSet(), usual = new WeakMap() // glyphs that grew, heights before
const embolden = (model) => {
  for (const {glyph} of model.renderers.filter(({glyph}) => glyph && !bold.has(glyph))) {
    bold.add(glyph)
    for (const name of ['size', 'line_width']) {
      const value = glyph[name]?.value ?? glyph[name]
      if (Number.isFinite(value)) glyph.setv({[name]: {value: BOLD * value}}, {sync: false})
    }
  }
}
const fill = (figure) => {
  const plots = plotsOf(figure), top = figure.getBoundingClientRect().top
  plots.forEach(({model}) => embolden(model))
  const rows = new Set(plots.map(({box}) => Math.round(box.getBoundingClientRect().top))).size
  const spare = innerHeight - FOOT - Math.max(top, 0) - figure.offsetHeight
  if (!rows || Math.abs(spare) < 8) return
  for (const {model, box} of plots) {
    if (!usual.has(model)) usual.set(model, box.offsetHeight)
    const tall = Math.max(Math.min(LEAST, usual.get(model)), box.offsetHeight + spare / rows)
    if (model.frame_height && !model.frame_width) continue // tiles, whose height follows their width
    if (model.frame_height > 1) { // of a fixed shape
      const by = Math.max(.5, 1 + (tall - box.offsetHeight) / model.frame_height)
      model.setv({frame_height: Math.round(by * model.frame_height), frame_width: Math.round(by * model.frame_width)}, {sync: false})
    } else if (Number.isFinite(model.aspect_ratio)) {
      model.setv({max_width: Math.round(tall * model.aspect_ratio)}, {sync: false})
    } else if (model.height) model.setv({height: Math.round(tall)}, {sync: false})
  }
}

let here = null  // the heading that was stepped to
let byHand = false  // whether the page was scrolled otherwise since

const nav = document.createElement('nav')
nav.className = 'steps'
nav.setAttribute('aria-label', tr('All figures'))
nav.innerHTML = `<p id="keys" hidden>${KEYS.map(([key, what]) => `<span><kbd>${key}</kbd> ${what}</span>`).join(' ')}</p>
  <button type="button" aria-label="${tr('Previous figure')}">‹</button><span class="at"></span>
  <button type="button" aria-label="${tr('Next figure')}">›</button>
  <button type="button" aria-label="${tr('Keys')}" aria-expanded="false" aria-controls="keys">?</button>`
const [before, after, ask] = nav.querySelectorAll('button')
const keys = nav.querySelector('p'), at = nav.querySelector('.at')

const unfold = (open) => {
  keys.hidden = !open
  ask.setAttribute('aria-expanded', String(open))
}

const show = (steps = marks()) => {
  if (here) stage(here) // also hides what was built since
  jot()
  nav.hidden = !steps.length
  const k = steps.indexOf(here)
  const told = k < 0 ? tr('{n} figures', {n: steps.length})
    : tr('{k} of {n}: {title}', {k: k + 1, n: steps.length, title: here.textContent})
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
    if (presenting()) fill(holder(mark, 'figure'))
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
    stage(mark)
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

const press = (labels, figure = null) => {
  let button = null
  everywhere((node) => {
    if (node.tagName !== 'BUTTON' || !labels.includes(node.textContent.trim()) || !node.getClientRects().length) return
    if (!figure || holder(node, 'figure') === figure) button = node
  })
  button?.click()
}
// What trains or is replayed is brought into view, unless some of it is there.
document.addEventListener('click', (event) => {
  const button = event.composedPath().find((node) => node.tagName === 'BUTTON')
  if (!button || ![tr('Train'), tr('Replay')].includes(button.textContent.trim())) return
  const moving = marks().filter((mark) => 'moves' in mark.dataset)
  const inView = (mark) => {
    const {top, bottom} = holder(mark, 'figure').getBoundingClientRect()
    return top < innerHeight / 2 && bottom > innerHeight / 2
  }
  if (!moving.length || (presenting() ? moving.includes(here) : moving.some(inView))) return
  if (presenting()) { go(moving[0]); return }
  uncover(moving[0])
  moving[0].scrollIntoView({block: 'start', behavior: 'smooth'}) // the focus stays on the button
}, {capture: true})
const blank = () => {
  const shade = document.querySelector('.blank')
  if (shade) shade.remove()
  else document.body.append(Object.assign(document.createElement('div'), {className: 'blank'}))
}

// The presenter's notes: what to say of this figure, what it reads now, and what comes next.
let notes = null
const open = () => {
  notes = window.open('', 'scant-notes', 'width=720,height=560')
  if (notes) notes.document.title = tr('Notes')
  jot()
}
const jot = () => {
  if (!notes || notes.closed) return
  const steps = marks(), k = steps.indexOf(here), figure = here && holder(here, 'figure')
  const texts = {lesson: '', say: '', reading: ''}
  everywhere((node) => {
    if (node.matches('p.lesson')) texts.lesson = node.textContent
    if (!figure || holder(node, 'figure') !== figure) return
    if (node.matches('p.lede')) texts.say = node.textContent
    if (node.matches('p.reading')) texts.reading = node.textContent
  })
  const told = [['h2', here?.textContent ?? ''], ['h1', texts.say], ['p', texts.reading], ['p', texts.lesson],
    ['p', steps[k + 1] ? tr('Next: {title}', {title: steps[k + 1].textContent}) : tr('This is the last figure.')]]
  const body = notes.document.body
  body.style.cssText = 'font: 22px/1.4 Georgia, serif; margin: 32px'
  body.replaceChildren(...told.filter(([, words]) => words).map(([tag, words]) => Object.assign(notes.document.createElement(tag), {textContent: words})))
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
    Home: () => step(0), r: () => press([tr('Replay'), tr('Pause replay'), tr('Resume replay')]), t: () => press([tr('Train')]),
    g: () => press([tr('Reveal')], here && holder(here, 'figure')), b: blank, s: open, '?': () => unfold(keys.hidden),
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
  const wanted = Number(word('step')) || Number(presenting())
  if (wanted >= 1) begin(wanted)
  if (!presenting()) return
  document.body.append(nav)
  nav.hidden = true
  setInterval(show, 1500)
})
}
