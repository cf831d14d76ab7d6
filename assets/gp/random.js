// Numbers that are the same on every page: a seeded generator, normal draws, and examples made of them.
import {priorRoot, priorSample} from './algebra.js'
import {GRID} from './state.js'

/** Uniform numbers in [0, 1) from a seed (mulberry32). */
export const uniform = (seed) => {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/** Standard normal numbers from uniform ones (Box and Muller). */
export const normals = (next, count) =>
  Float64Array.from({length: count}, () => Math.sqrt(-2 * Math.log(1 - next())) * Math.cos(2 * Math.PI * next()))

/** Points of a curve that is drawn from the prior: one at random in each of `count` parts of the plot. */
export const drawnExample = (seed, params, count) => {
  const next = uniform(seed)
  const curve = priorSample(priorRoot(params, GRID), params.outputscale, normals(next, GRID.length))
  const errors = normals(next, count)
  const points = Array.from(errors, (error, slot) => {
    const at = Math.floor((slot + next()) * GRID.length / count)
    return {x: GRID[at], y: curve[at] + params.noise * error, slot}
  })
  return {curve, points}
}
