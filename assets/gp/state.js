// What the page shows, within which bounds, and as the text behind # in its address.
import {KERNELS} from './algebra.js'

export const X = [0, 10], Y = [-3, 3] // the plot's ranges
export const GRID = Float64Array.from({length: 200}, (_, i) => X[0] + (X[1] - X[0]) * i / 199)
export const MAX_POINTS = 40
export const BOUNDS = {lengthscale: [0.1, 10], noise: [0.01, 1], outputscale: [0.2, 3], period: [0.5, 10]}
export const DEFAULTS = {kernel: 'rbf', lengthscale: 0.5, noise: 0.1, outputscale: 1, period: 3}
export const NAMES = {lengthscale: 'Lengthscale', noise: 'Noise', outputscale: 'Outputscale', period: 'Period'}

/** Parameters that the kernel has, with their bounds. */
export const boundsOf = (kernel) => {
  const {period, ...rest} = BOUNDS
  return kernel === 'periodic' ? {...rest, period} : rest
}

/** The smallest number that no point has: by it a point keeps its draws while others come and go. */
export const freeSlot = (points) => {
  const taken = new Set(points.map(({slot}) => slot))
  return Array.from({length: MAX_POINTS}, (_, slot) => slot).find((slot) => !taken.has(slot))
}

const short = (value) => String(Number(value.toPrecision(4)))

/** The text behind # for these parameters and points. */
export const toHash = (params, points) => {
  const fields = [['kernel', params.kernel], ...Object.keys(boundsOf(params.kernel)).map((name) => [name, short(params[name])])]
  fields.push(['points', points.map(({x, y}) => `${short(x)},${short(y)}`).join(';')])
  return fields.map((field) => field.join('=')).join('&')
}

const number = (text, [low, high], name) => {
  const value = text.trim() === '' ? NaN : Number(text)
  if (!(value >= low && value <= high)) throw new RangeError(tr('{name} must be a number from {low} to {high}', {name, low, high}))
  return value
}

/**
 * What the text behind # asks for: {params, points} or {question}; null if it is empty.
 *
 * Throws a RangeError whose message names what is wrong.
 */
export const fromHash = (text) => {
  const fields = new URLSearchParams(text.replace(/^#/, ''))
  if (![...fields].length) return null
  const allowed = new Set(['kernel', 'points', 'guess', ...Object.keys(BOUNDS)])
  for (const name of fields.keys()) if (!allowed.has(name)) throw new RangeError(tr('it has no part {name}', {name: JSON.stringify(name.slice(0, 40))}))
  if (fields.has('guess')) {
    const question = number(fields.get('guess'), [1, 1000], 'guess')
    if (!Number.isInteger(question)) throw new RangeError(tr('guess must be a whole number'))
    return {question}
  }
  const params = {...DEFAULTS}
  if (fields.has('kernel')) {
    if (!Object.hasOwn(KERNELS, fields.get('kernel'))) throw new RangeError(tr('kernel must be one of {kernels}', {kernels: Object.keys(KERNELS).join(', ')}))
    params.kernel = fields.get('kernel')
  }
  for (const [name, bounds] of Object.entries(BOUNDS))
    if (fields.has(name)) params[name] = number(fields.get(name), bounds, name)
  const pairs = (fields.get('points') ?? '').split(';').filter(Boolean)
  if (pairs.length > MAX_POINTS) throw new RangeError(tr('it has more than {n} points', {n: MAX_POINTS}))
  const points = pairs.map((pair, slot) => {
    const [x, y, ...rest] = pair.split(',')
    if (y === undefined || rest.length) throw new RangeError(tr('each point must be two numbers, x,y'))
    return {x: number(x, X, 'x'), y: number(y, Y, 'y'), slot}
  })
  return {params, points}
}
