// Sentences about what is shown, made of its numbers.
import {GRID} from './state.js'

const language = document.documentElement.lang
export const rounded = (value) => value.toLocaleString(language, {minimumSignificantDigits: 3, maximumSignificantDigits: 3, useGrouping: false})
export const near = (value) => fixed(value, 1).replace('-', '−')
export const signed = (value) => (value < 0 ? '−' : '') + fixed(Math.abs(value), 1)
export const counted = (n) => n ? ntr('{n} point', '{n} points', n) : tr('no points')

/** Where the band is wide, and why. */
const ofBand = (model, posterior) => {
  const {params, x} = model, widest = posterior.deviation.reduce((best, v, i, all) => v > all[best] ? i : best, 0)
  const prior = 1.96 * params.outputscale, bound = near(prior)
  if (!model.n && params.kernel === 'periodic')
    return tr('No points yet, so this is the prior: at each x the curve lies within ±{bound} with a probability of 95%, and repeats after {period}.', {bound, period: rounded(params.period)})
  if (!model.n)
    return tr('No points yet, so this is the prior: at each x the curve lies within ±{bound} with a probability of 95%, and it bends on a scale of {lengthscale}.', {bound, lengthscale: rounded(params.lengthscale)})
  const away = Math.min(...x.map((at) => Math.abs(at - GRID[widest])))
  const wide = 1.96 * posterior.deviation[widest]
  const values = {x: near(GRID[widest]), away: near(away), wide: near(wide), prior: bound}
  return wide > 0.9 * prior
    ? tr('The band is widest at x = {x}, {away} from the nearest point: ±{wide}, almost as in the prior (±{prior}), since points so far away say little there.', values)
    : tr('The band is widest at x = {x}, {away} from the nearest point: ±{wide}; in the prior it was ±{prior} everywhere.', values)
}

const change = (by) => {
  if (Math.abs(by) < 0.05) return tr('the same')
  const value = fixed(Math.abs(by), 1)
  return by > 0 ? tr('{value} higher', {value}) : tr('{value} lower', {value})
}

/** How the evidence compares with that of the best lengthscale of the curve. */
const ofEvidence = (model, curve) => {
  if (!model.n) return tr('Click into the plot to add a point.')
  const best = curve.reduce((one, other) => other.evidence > one.evidence ? other : one)
  const gain = best.evidence - model.evidence
  const flat = curve.filter(({evidence}) => evidence > best.evidence - 2).length > 0.8 * curve.length
  if (flat) return ntr('One point says little about the lengthscale: the evidence hardly depends on it.', 'These points say little about the lengthscale: the evidence hardly depends on it.', model.n)
  if (gain < 0.5) return tr('With these points no other lengthscale has clearly more evidence than {lengthscale}.', {lengthscale: rounded(model.params.lengthscale)})
  const values = {
    best: rounded(best.lengthscale), fit: change(best.dataFit - model.dataFit),
    penalty: change(best.complexity - model.complexity), gain: fixed(gain, 1),
  }
  return model.params.lengthscale < best.lengthscale
    ? tr('The lengthscale is too short for these points: at {best} the data fit is {fit} and the complexity penalty {penalty}, together {gain} more evidence.', values)
    : tr('The lengthscale is too long for these points: at {best} the data fit is {fit} and the complexity penalty {penalty}, together {gain} more evidence.', values)
}

/** What to see now. */
export const reading = (model, posterior, curve) => `${ofBand(model, posterior)} ${ofEvidence(model, curve)}`

/** The answer to a question: the lengthscale of its curve, the guess and what the evidence says. */
export const answer = (truth, guess, curve) => {
  const best = curve.reduce((one, other) => other.evidence > one.evidence ? other : one)
  const inside = curve.filter(({evidence}) => evidence > best.evidence - 2).map(({lengthscale}) => lengthscale)
  const ratio = guess / truth, times = Math.max(ratio, 1 / ratio), factor = fixed(times, 1)
  const away = times < 1.1 ? tr('right to within 10%')
    : ratio > 1 ? tr('{factor} times too long', {factor}) : tr('{factor} times too short', {factor})
  return tr('The curve (dashed) was drawn with lengthscale {truth}. You guessed {guess}: {away}. The evidence of the points is highest at {best}, and at most 2 lower from {low} to {high}.', {
    truth: rounded(truth), guess: rounded(guess), away, best: rounded(best.lengthscale), low: rounded(inside[0]), high: rounded(inside.at(-1)),
  })
}
