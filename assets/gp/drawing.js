// Curves on a canvas, whose axes and points are elements over it. Without a graphics card, an SVG that
// changes with every frame takes about twice the time.
import {X, Y} from './state.js'

export const GRAY = '#808791', BLUE = '#0072b2', GREEN = '#009e73', VERMILION = '#d55e00' // of all plots

/** A canvas that follows the size of its frame; `redraw()` is called when that changes. */
export class Canvas {
  constructor(element, x, y, redraw) {
    Object.assign(this, {element, x, y, pen: element.getContext('2d')})
    new ResizeObserver(() => {
      const {width, height} = element.getBoundingClientRect()
      Object.assign(element, {width: Math.round(width * devicePixelRatio), height: Math.round(height * devicePixelRatio)})
      redraw()
    }).observe(element)
  }

  clear() {
    const {width, height} = this.element
    this.pen.clearRect(0, 0, width, height)
    this.accent = getComputedStyle(this.element).getPropertyValue('--accent') // by the theme
  }

  trace(xs, ys, on) {
    const {x: [left, right], y: [low, high], element: {width, height}, pen} = this
    const across = width / (right - left), down = height / (high - low)
    for (let i = 0; i < xs.length; i++) {
      const x = (xs[i] - left) * across, y = (high - ys[i]) * down
      if (i || on) pen.lineTo(x, y)
      else pen.moveTo(x, y)
    }
  }

  /** Draw a curve; the width and dashes are in pixels of the page. */
  line(xs, ys, color, {width = 2, dash = [], opacity = 1} = {}) {
    const {pen} = this
    Object.assign(pen, {strokeStyle: color, globalAlpha: opacity, lineWidth: width * devicePixelRatio, lineJoin: 'bevel'})
    pen.setLineDash(dash.map((length) => length * devicePixelRatio))
    pen.beginPath()
    this.trace(xs, ys)
    pen.stroke()
  }

  /** Fill the band between two curves. */
  band(xs, lower, upper, color, opacity) {
    Object.assign(this.pen, {fillStyle: color, globalAlpha: opacity})
    this.pen.beginPath()
    this.trace(xs, lower)
    this.trace(Array.from(xs).reverse(), Array.from(upper).reverse(), true)
    this.pen.fill()
  }
}

/** Where a point lies in its frame, as styles. */
export const position = ({x, y}) => ({
  left: `${100 * (x - X[0]) / (X[1] - X[0])}%`,
  top: `${100 * (Y[1] - y) / (Y[1] - Y[0])}%`,
})

/** The point at a place of the window. */
export const pointAt = (frame, {clientX, clientY}) => {
  const box = frame.getBoundingClientRect()
  const share = [(clientX - box.left) / box.width, (box.bottom - clientY) / box.height]
  const [x, y] = [X, Y].map(([low, high], k) => low + Math.min(1, Math.max(0, share[k])) * (high - low))
  return {x, y}
}

const CURVES = 61 // lengthscales of the curve of the evidence

/** The evidence over the lengthscale with its two terms, and marks of lengthscales in it. */
export class EvidencePlot {
  constructor(root, bounds, redraw) {
    const range = bounds.map(Math.log10)
    this.places = Array.from({length: CURVES}, (_, i) => range[0] + (range[1] - range[0]) * i / (CURVES - 1))
    this.lengthscales = this.places.map((place) => 10 ** place)
    this.root = root
    this.canvas = new Canvas(root.querySelector('canvas'), range, [0, 1], redraw)
  }

  /** Draw a result of `evidenceCurve`; the range of values follows its maximum and the number of points. */
  draw(values, n) {
    const {canvas} = this, span = 8 + 2 * n, top = Math.max(...values.map(({evidence}) => evidence))
    const [low, high] = canvas.y = [top - span, top + 0.5 * span]
    canvas.clear()
    const line = (term, color, style) => { if (n) canvas.line(this.places, values.map(term), color, style) }
    line((v) => v.dataFit, GREEN, {dash: [7, 4]})
    line((v) => -v.complexity, VERMILION, {dash: [2, 4]})
    line((v) => v.evidence, canvas.accent, {width: 2.5})
    const step = [1, 2, 5, 10, 20, 50].find((size) => 1.5 * span / size <= 5) ?? 100
    const ticks = []
    for (let v = Math.ceil(low / step) * step; n && v <= high; v += step)
      ticks.push(`<span style="bottom:${100 * (v - low) / (high - low)}%">${String(v).replace('-', '−')}</span>`)
    this.root.querySelector('.y .ticks').innerHTML = ticks.join('')
  }

  /** Place a mark at a lengthscale; null hides it. */
  mark(name, lengthscale) {
    const mark = this.root.querySelector(`.${name}`), [low, high] = this.canvas.x
    mark.hidden = lengthscale === null
    if (!mark.hidden) mark.style.left = `${100 * (Math.log10(lengthscale) - low) / (high - low)}%`
  }
}
