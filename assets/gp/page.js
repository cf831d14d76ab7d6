// The first page of the lesson: a Gaussian process that is fitted to the visitor's points in the browser.
import './frame.js'
import {evidenceCurve, fit, maximize, pathwise, predict, priorRoot} from './algebra.js'
import {BLUE, Canvas, EvidencePlot, GRAY, VERMILION} from './drawing.js'
import {GuessFirst} from './guess.js'
import {Points} from './points.js'
import {drawnExample, normals, uniform} from './random.js'
import {BOUNDS, DEFAULTS, GRID, MAX_POINTS, X, Y, boundsOf, fromHash, toHash} from './state.js'
import {counted, reading, rounded, signed} from './words.js'

const part = (selector) => document.querySelector(`.gp ${selector}`)
const SAMPLES = 4, GLIDE = 350 // ms from the present parameters to the best
const DRAWS = (() => { // the same on every page: curves move with the sliders and do not jump
  const next = uniform(7)
  return Array.from({length: SAMPLES}, () => ({
    grid: normals(next, GRID.length), points: normals(next, MAX_POINTS), noise: normals(next, MAX_POINTS),
  }))
})()
const example = () => ({
  params: {...DEFAULTS},
  points: drawnExample(39, {...DEFAULTS, lengthscale: 1.3, noise: 0.2}, 9).points,
})

const state = {...example(), question: null, hidden: false, saved: null}
let queued = 0
const schedule = () => { queued ||= requestAnimationFrame(() => { queued = 0; show() }) }
const field = new Canvas(part('.field canvas'), X, Y, () => show())
const plot = new EvidencePlot(part('.curve'), BOUNDS.lengthscale, () => { curveOf.forget(); show() })

// What is shown follows from the state; what takes long is kept while its inputs stay.
const kept = (make) => {
  let key, value
  const get = (now, ...given) => {
    if (now !== key) { value = make(...given); key = now }
    return value
  }
  return Object.assign(get, {forget: () => { key = undefined }})
}
const rootOf = kept(priorRoot)
const curveOf = kept((points, params) => {
  const values = evidenceCurve(points, params, plot.lengthscales)
  plot.draw(values, points.length)
  return values
})
const ticked = (name) => part(`input[name=${name}]`).checked

/** The same curves of prior and posterior, [{prior, posterior}], if some are to be shown. */
const samplesOf = (model) => {
  if (!ticked('prior-samples') && !ticked('posterior-samples')) return []
  const {kernel, lengthscale, period} = state.params, slots = state.points.map(({slot}) => slot)
  const draws = DRAWS.map(({grid, points, noise}) => ({grid, points: slots.map((k) => points[k]), noise: slots.map((k) => noise[k])}))
  return pathwise(model, rootOf(`${kernel} ${lengthscale} ${period}`, state.params, GRID), GRID, draws)
}

const drawField = (model, posterior) => {
  const {question, hidden, params} = state, edge = 1.96 * params.outputscale
  const samples = samplesOf(model), shifted = (sign) => posterior.mean.map((v, i) => v + sign * 1.96 * posterior.deviation[i])
  field.clear()
  if (ticked('prior')) {
    field.band(X, [-edge, -edge], [edge, edge], GRAY, 0.13)
    for (const y of [-edge, edge]) field.line(X, [y, y], GRAY, {width: 1, dash: [5, 5]})
  }
  if (ticked('posterior')) field.band(GRID, shifted(-1), shifted(1), BLUE, 0.24)
  if (ticked('prior-samples')) for (const {prior} of samples) field.line(GRID, prior, GRAY, {width: 1.25})
  if (ticked('posterior-samples')) for (const one of samples) field.line(GRID, one.posterior, field.accent, {width: 1.25, opacity: 0.75})
  if (question && !hidden) field.line(GRID, question.curve, VERMILION, {width: 3, dash: [9, 5]})
  if (ticked('posterior')) field.line(GRID, posterior.mean, field.accent, {width: 3})
}

const show = () => {
  const {params, points, question, hidden} = state, {kernel, lengthscale} = params
  const model = fit(points, params), posterior = predict(model, GRID)
  drawField(model, posterior)
  const {lengthscale: _, ...others} = params
  const values = curveOf(JSON.stringify([others, points]), points, params)
  plot.mark('here', lengthscale)
  plot.mark('true', question && !hidden ? question.lengthscale : null)
  const numbers = hidden || !points.length ? ['–', '–', '–'] : [model.evidence, model.dataFit, model.complexity].map(signed)
  if (numbers[2].startsWith('−')) numbers[2] = `(${numbers[2]})`
  ;['.evidence-value', '.fit-value', '.penalty-value'].forEach((name, k) => { part(name).textContent = numbers[k] })
  part('.reading').textContent = hidden ? tr('Evidence and sentences are hidden until you press Reveal.') : reading(model, posterior, values)
  for (const name of Object.keys(BOUNDS)) {
    const slider = part(`input[name=${name}]`), text = rounded(params[name])
    slider.value = Math.log10(params[name])
    slider.setAttribute('aria-valuetext', text)
    slider.closest('label').querySelector('b').textContent = text
    slider.disabled = (hidden && name !== 'lengthscale') || (name === 'period' && kernel !== 'periodic')
  }
  part('select').value = kernel
  part('select').disabled = hidden
  for (const button of document.querySelectorAll('.gp .tools button')) button.disabled = Boolean(question)
  part('.best').disabled = hidden || points.length < 2
  part('.evidence').classList.toggle('concealed', hidden)
  visible.draw(points, hidden)
  return {model, posterior, values}
}

/** Say what has changed, and put it into the address. */
const commit = (what = '') => {
  const {model} = show(), {params, points, question, hidden} = state
  const total = points.length && !hidden
    ? tr('{points}, log evidence {evidence}.', {points: counted(points.length), evidence: signed(model.evidence)})
    : `${counted(points.length)}.`
  part('[role=status]').textContent = `${what} ${total}`.trim()
  history.replaceState(null, '', `#${question ? `guess=${question.number}` : toHash(params, points)}`)
}
const visible = new Points(part('.frame.field'), state, {
  changed: schedule,
  commit,
  say: (text) => { part('[role=status]').textContent = text },
  predict: (x) => predict(fit(state.points, state.params), [x]),
})

const guess = new GuessFirst(part('.guess'), {
  ask: (question, params) => {
    state.saved ??= {params: state.params, points: state.points}
    const {saved} = state
    Object.assign(state, question
      ? {question, hidden: true, params: {...params}, points: question.points.map((point) => ({...point}))}
      : {question: null, hidden: false, saved: null, ...saved})
    commit(question ? tr('A new question:') : tr('Your points are back:'))
  },
  reveal: () => {
    state.hidden = false
    const {values} = show()
    commit(tr('Revealed:'))
    return {guess: state.params.lengthscale, curve: values}
  },
})

const glide = (target) => {
  const {params} = state, from = {...params}, begin = performance.now()
  const calm = matchMedia('(prefers-reduced-motion: reduce)').matches
  const step = (now) => {
    if (state.params !== params) return // a question or a link has come in between
    const share = calm ? 1 : Math.min(1, Math.max(0, now - begin) / GLIDE)
    for (const name of Object.keys(boundsOf(from.kernel))) params[name] = from[name] * (target[name] / from[name]) ** share
    if (share < 1) { show(); requestAnimationFrame(step) } else commit(tr('Best by evidence:'))
  }
  requestAnimationFrame(step)
}
for (const name of Object.keys(BOUNDS)) {
  const slider = part(`input[name=${name}]`)
  slider.addEventListener('input', () => { state.params[name] = 10 ** slider.valueAsNumber; schedule() })
  slider.addEventListener('change', () => commit())
}
part('select').addEventListener('change', ({target}) => { state.params.kernel = target.value; commit() })
for (const box of document.querySelectorAll('.gp .legend input')) box.addEventListener('change', schedule)
part('.best').addEventListener('click', () => glide(maximize(state.points, state.params, boundsOf(state.params.kernel))))
part('.clear').addEventListener('click', () => { state.points.length = 0; commit(tr('Cleared:')) })
part('.example').addEventListener('click', () => { Object.assign(state, example()); commit(tr('The example:')) })

/** Show what the address asks for; the example, with a sentence, if that cannot be read. */
const open = () => {
  let asked = null, fault = ''
  try {
    asked = fromHash(location.hash)
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    fault = tr('This link is broken: {reason}. The example is shown in its place.', {reason: error.message})
  }
  part('[role=alert]').textContent = fault
  part('[role=alert]').hidden = !fault
  guess.close()
  Object.assign(state, asked?.params ? asked : example(), {question: null, hidden: false, saved: null})
  if (asked?.question) guess.begin(asked.question)
  else show()
}
addEventListener('hashchange', open)
new MutationObserver(() => { curveOf.forget(); schedule() }).observe(document.documentElement, {attributeFilter: ['class']}) // the theme
open()
