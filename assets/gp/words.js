// Sentences about what is shown, made of its numbers.
import {GRID} from './state.js'

export const rounded = (value) => value.toPrecision(3)
export const signed = (value) => (value < 0 ? '−' : '') + Math.abs(value).toFixed(1)
export const counted = (n) => n ? `${n} ${n === 1 ? 'point' : 'points'}` : 'no points'
const near = (value) => value.toFixed(1).replace('-', '−')

/** Where the band is wide, and why. */
const ofBand = (model, posterior) => {
  const {params, x} = model, widest = posterior.deviation.reduce((best, v, i, all) => v > all[best] ? i : best, 0)
  const prior = 1.96 * params.outputscale
  if (!model.n)
    return `No points yet, so this is the prior: at each x the curve lies within ±${near(prior)} with a probability of 95 %`
      + (params.kernel === 'periodic' ? `, and repeats after ${rounded(params.period)}.` : `, and it bends on a scale of ${rounded(params.lengthscale)}.`)
  const away = Math.min(...x.map((at) => Math.abs(at - GRID[widest])))
  const wide = 1.96 * posterior.deviation[widest]
  const place = `at x = ${near(GRID[widest])}, ${near(away)} from the nearest point`
  return wide > 0.9 * prior
    ? `The band is widest ${place}: ±${near(wide)}, almost as in the prior (±${near(prior)}), since points so far away say little there.`
    : `The band is widest ${place}: ±${near(wide)}; in the prior it was ±${near(prior)} everywhere.`
}

const change = (by) => Math.abs(by) < 0.05 ? 'the same' : `${Math.abs(by).toFixed(1)} ${by > 0 ? 'higher' : 'lower'}`

/** How the evidence compares with that of the best lengthscale of the curve. */
const ofEvidence = (model, curve) => {
  if (!model.n) return 'Click into the plot to add a point.'
  const best = curve.reduce((one, other) => other.evidence > one.evidence ? other : one)
  const gain = best.evidence - model.evidence
  const flat = curve.filter(({evidence}) => evidence > best.evidence - 2).length > 0.8 * curve.length
  if (flat) return `${model.n === 1 ? 'One point says' : 'These points say'} little about the lengthscale: the evidence hardly depends on it.`
  if (gain < 0.5) return `With these points no other lengthscale has clearly more evidence than ${rounded(model.params.lengthscale)}.`
  const fit = best.dataFit - model.dataFit, penalty = best.complexity - model.complexity
  const side = model.params.lengthscale < best.lengthscale ? 'short' : 'long'
  return `The lengthscale is too ${side} for these points: at ${rounded(best.lengthscale)} the data fit is `
    + `${change(fit)} and the complexity penalty ${change(penalty)}, together ${gain.toFixed(1)} more evidence.`
}

/** What to see now. */
export const reading = (model, posterior, curve) => `${ofBand(model, posterior)} ${ofEvidence(model, curve)}`

/** The answer to a question: the lengthscale of its curve, the guess and what the evidence says. */
export const answer = (truth, guess, curve) => {
  const best = curve.reduce((one, other) => other.evidence > one.evidence ? other : one)
  const inside = curve.filter(({evidence}) => evidence > best.evidence - 2).map(({lengthscale}) => lengthscale)
  const ratio = guess / truth, times = Math.max(ratio, 1 / ratio)
  const away = times < 1.1 ? 'right within 10 %' : `${times.toFixed(1)} times too ${ratio > 1 ? 'long' : 'short'}`
  return `The curve (dashed) was drawn with lengthscale ${rounded(truth)}. You guessed ${rounded(guess)}: ${away}. `
    + `The evidence of the points is highest at ${rounded(best.lengthscale)}; from ${rounded(inside[0])} to ${rounded(inside.at(-1))} it is less than 2 lower.`
}
