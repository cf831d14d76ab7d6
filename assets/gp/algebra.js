// A Gaussian process in one dimension with Gaussian noise (Rasmussen and Williams 2006, algorithm 2.1
// and section 5.4.1). Matrices are Float64Arrays, row by row. `outputscale` and `noise` are standard
// deviations: y = f(x) + noise * normal, Cov[f(x), f(x')] = outputscale^2 * correlation(x - x').

// Correlation functions of a distance, for given parameters.
export const KERNELS = {
  rbf: ({lengthscale}) => (distance) => Math.exp(-0.5 * (distance / lengthscale) ** 2),
  matern52: ({lengthscale}) => (distance) => {
    const r = Math.sqrt(5) * Math.abs(distance) / lengthscale
    return (1 + r + r * r / 3) * Math.exp(-r)
  },
  matern32: ({lengthscale}) => (distance) => {
    const r = Math.sqrt(3) * Math.abs(distance) / lengthscale
    return (1 + r) * Math.exp(-r)
  },
  periodic: ({lengthscale, period}) => (distance) =>
    Math.exp(-2 * (Math.sin(Math.PI * distance / period) / lengthscale) ** 2),
}
const JITTER = 1e-8 // of the unit diagonal of a correlation matrix
const TALLEST_JITTER = 1e-2

/** scale times the correlations of inputs a with inputs b, a.length by b.length. */
const cross = (params, a, b, scale = 1) => {
  const kernel = KERNELS[params.kernel](params), m = b.length, made = new Float64Array(a.length * m)
  for (let i = 0; i < a.length; i++)
    for (let j = 0; j < m; j++) made[i * m + j] = scale * kernel(a[i] - b[j])
  return made
}

/** The lower triangle of scale times the correlations of inputs with each other, plus added I. */
const gram = (params, x, scale = 1, added = 0) => {
  const kernel = KERNELS[params.kernel](params), n = x.length, made = new Float64Array(n * n)
  for (let i = 0; i < n; i++) {
    for (let j = 0; j < i; j++) made[i * n + j] = scale * kernel(x[i] - x[j])
    made[i * n + i] = scale + added
  }
  return made
}

/** Lower triangle L with L L^T = matrix + jitter I, of whose matrix the lower triangle is read; null if
 * that is not positive definite. */
const factor = (matrix, n, jitter) => {
  const L = new Float64Array(n * n)
  for (let i = 0; i < n; i++) {
    for (let j = 0; j <= i; j++) {
      let sum = matrix[i * n + j]
      for (let k = 0, a = i * n, b = j * n; k < j; k++, a++, b++) sum -= L[a] * L[b]
      if (i !== j) { L[i * n + j] = sum / L[j * n + j]; continue }
      sum += jitter
      if (!(sum > 0)) return null
      L[i * n + i] = Math.sqrt(sum)
    }
  }
  return L
}

/** Cholesky factor with the smallest jitter that suffices: `jitter`, then ten times more, and so on. */
export const cholesky = (matrix, n, jitter = JITTER) => {
  for (let added = jitter; added <= TALLEST_JITTER; added = added ? 10 * added : JITTER) {
    const L = factor(matrix, n, added)
    if (L) return L
  }
  throw new RangeError('The matrix is not positive definite.')
}

/** Solve L x = b in place; b is a row of n values. */
const solveLower = (L, n, b) => {
  for (let i = 0; i < n; i++) {
    let sum = b[i]
    for (let k = 0, at = i * n; k < i; k++, at++) sum -= L[at] * b[k]
    b[i] = sum / L[i * n + i]
  }
  return b
}

/** Solve L^T x = b in place. */
const solveUpper = (L, n, b) => {
  for (let i = n - 1; i >= 0; i--) {
    b[i] /= L[i * n + i]
    for (let k = 0, at = i * n; k < i; k++, at++) b[k] -= L[at] * b[i]
  }
  return b
}

const dot = (a, b, n, at = 0) => {
  let sum = 0
  for (let i = 0; i < n; i++) sum += a[at + i] * b[i]
  return sum
}

/** Condition on points [{x, y}]. The evidence is the log marginal likelihood: data fit minus complexity. */
export const fit = (points, params) => {
  const n = points.length, x = Float64Array.from(points, (point) => point.x)
  const y = Float64Array.from(points, (point) => point.y)
  const L = cholesky(gram(params, x, params.outputscale ** 2, params.noise ** 2), n, 0)
  const alpha = solveUpper(L, n, solveLower(L, n, Float64Array.from(y)))
  const dataFit = -0.5 * dot(y, alpha, n) // -1/2 y^T K^-1 y
  let complexity = 0.5 * n * Math.log(2 * Math.PI) // 1/2 log det(2 pi K)
  for (let i = 0; i < n; i++) complexity += Math.log(L[i * n + i])
  return {n, x, y, L, alpha, dataFit, complexity, evidence: dataFit - complexity, params}
}

/** Posterior mean and standard deviation of f at inputs. */
export const predict = ({n, x, L, alpha, params}, inputs) => {
  const variance = params.outputscale ** 2, m = inputs.length
  const covariance = cross(params, inputs, x, variance)
  const mean = new Float64Array(m), deviation = new Float64Array(m)
  for (let i = 0; i < m; i++) {
    const row = covariance.subarray(i * n, (i + 1) * n)
    mean[i] = dot(row, alpha, n)
    solveLower(L, n, row)
    deviation[i] = Math.sqrt(Math.max(0, variance - dot(row, row, n)))
  }
  return {mean, deviation}
}

/** Root of the grid's correlations, by which normal draws become curves of the prior. */
export const priorRoot = (params, grid) => cholesky(gram(params, grid), grid.length)

/** A curve of the prior on the grid, from normal draws. */
export const priorSample = (root, outputscale, draws) => {
  const m = draws.length
  return Float64Array.from(draws, (_, i) => outputscale * dot(root, draws, i + 1, i * m))
}

/**
 * Curves of the prior and, from the same draws, of the posterior on the grid (Matheron's rule; Wilson
 * et al. 2020): f + k(., x) K^-1 (y - f(x) - noise). A draw has normal numbers `grid`, and `points` and
 * `noise` with one for each point.
 */
export const pathwise = (model, root, grid, draws) => {
  const {n, x, y, L, params} = model, {outputscale, noise} = params, m = grid.length
  // The prior at the points given the grid, by the Cholesky factor of both together.
  const known = cross(params, x, grid), rest = gram(params, x)
  for (let i = 0; i < n; i++) solveLower(root, m, known.subarray(i * m, (i + 1) * m))
  for (let i = 0; i < n; i++)
    for (let j = 0; j <= i; j++)
      rest[i * n + j] -= dot(known, known.subarray(j * m, (j + 1) * m), m, i * m)
  const restRoot = cholesky(rest, n), back = cross(params, grid, x, outputscale ** 2)
  return draws.map((draw) => {
    const prior = priorSample(root, outputscale, draw.grid)
    const weights = Float64Array.from(y, (value, i) => {
      const f = dot(known, draw.grid, m, i * m) + dot(restRoot, draw.points, i + 1, i * n)
      return value - outputscale * f - noise * draw.noise[i]
    })
    solveUpper(L, n, solveLower(L, n, weights))
    return {prior, posterior: prior.map((value, i) => value + dot(back, weights, n, i * n))}
  })
}

/** Evidence with its two terms at each of these lengthscales, other parameters unchanged. */
export const evidenceCurve = (points, params, lengthscales) =>
  Array.from(lengthscales, (lengthscale) => {
    const {dataFit, complexity, evidence} = fit(points, {...params, lengthscale})
    return {lengthscale, dataFit, complexity, evidence}
  })

/**
 * Parameters within bounds {name: [low, high]} that maximize the evidence: the best of a coarse grid of
 * logarithms, then a compass search from there, which halves its step where no neighbor is better.
 */
export const maximize = (points, params, bounds, {divisions = 5, tolerance = 1e-5} = {}) => {
  const names = Object.keys(bounds)
  const [low, high] = [0, 1].map((side) => names.map((name) => Math.log(bounds[name][side])))
  const with_ = (at) => ({...params, ...Object.fromEntries(names.map((name, k) => [name, Math.exp(at[k])]))})
  const value = (at) => fit(points, with_(at)).evidence
  const width = names.map((_, k) => (high[k] - low[k]) / divisions)
  let at = names.map((name, k) => Math.min(high[k], Math.max(low[k], Math.log(params[name]))))
  let best = value(at)
  const take = (candidate) => {
    const reached = value(candidate)
    if (reached <= best) return false
    at = candidate
    best = reached
    return true
  }
  for (let cell = 0; cell < divisions ** names.length; cell++)
    take(names.map((_, k) => low[k] + (Math.floor(cell / divisions ** k) % divisions + 0.5) * width[k]))
  for (let step = 0.5; step > tolerance;) {
    const moved = names.some((_, k) => [step, -step].some((by) =>
      take(at.map((v, j) => j === k ? Math.min(high[k], Math.max(low[k], v + by * width[k])) : v))))
    if (!moved) step /= 2
  }
  return with_(at)
}
