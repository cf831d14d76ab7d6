// The points of the plot: shown, and added, moved and removed by mouse, finger or keys.
import {pointAt, position} from './drawing.js'
import {MAX_POINTS, X, Y, freeSlot} from './state.js'
import {near} from './words.js'

const SLACK = 6 // pixels that a click may move
const STEP = {ArrowLeft: [-0.1, 0], ArrowRight: [0.1, 0], ArrowUp: [0, 0.1], ArrowDown: [0, -0.1]}
const LEAP = 5 // steps of an arrow key with shift
const REACH = 0.15 // of the cursor
const bounded = (value, [low, high]) => Math.min(high, Math.max(low, value))
const named = ({x, y}) => tr('x {x}, y {y}', {x: near(x), y: near(y)})

/**
 * Args:
 *   frame: The plot's frame.
 *   state: Holds `points`, each {x, y, slot}.
 *   page: `changed()` while a point moves, `commit(what)` after each change, `say(text)`, and
 *     `predict(x)`, by which the cursor reads the posterior.
 */
export class Points {
  constructor(frame, state, page) {
    Object.assign(this, {frame, state, page, layer: frame.querySelector('.points'), mark: frame.querySelector('.cursor')})
    this.cursor = {x: (X[0] + X[1]) / 2, y: 0}
    this.held = this.carried = null
    const on = (name, act) => frame.addEventListener(name, (event) => { if (!this.locked) act.call(this, event) })
    on('pointerdown', this.press)
    on('pointermove', this.drag)
    on('pointerup', this.release)
    on('keydown', this.key)
    frame.addEventListener('pointercancel', () => { this.held = null })
    frame.addEventListener('blur', () => { this.carried = null; this.mark.hidden = true })
  }

  draw(points, locked) {
    this.locked = locked
    this.frame.setAttribute('aria-disabled', locked)
    while (this.layer.childElementCount > points.length) this.layer.lastChild.remove()
    while (this.layer.childElementCount < points.length) this.layer.append(document.createElement('i'))
    points.forEach((point, i) => Object.assign(this.layer.children[i].style, position(point)))
    Object.assign(this.mark.style, position(this.cursor))
    this.mark.classList.toggle('carries', Boolean(this.carried))
  }

  add(at) {
    const {points} = this.state
    if (points.length >= MAX_POINTS) { this.page.say(tr('The plot takes at most {n} points.', {n: MAX_POINTS})); return }
    const point = {...at, slot: freeSlot(points)}
    points.push(point)
    this.page.commit(tr('Point added at {place};', {place: named(point)}))
  }

  remove(point) {
    this.state.points.splice(this.state.points.indexOf(point), 1)
    this.page.commit(tr('Point removed at {place};', {place: named(point)}))
  }

  press(event) {
    if (event.button || !event.isPrimary) return
    const at = [...this.layer.children].indexOf(event.target)
    this.mark.hidden = true
    this.held = {point: this.state.points[at], from: event, moved: false}
    if (at >= 0) this.frame.setPointerCapture(event.pointerId)
  }

  drag(event) {
    const {held} = this
    if (!held || !event.isPrimary) return
    held.moved ||= Math.hypot(event.clientX - held.from.clientX, event.clientY - held.from.clientY) > SLACK
    if (!held.point || !held.moved) return
    Object.assign(held.point, pointAt(this.frame, event))
    this.page.changed()
  }

  release(event) {
    const {held} = this
    this.held = null
    if (!held || !event.isPrimary) return
    if (held.point && held.moved) this.page.commit(tr('Point moved to {place};', {place: named(held.point)}))
    else if (held.point) this.remove(held.point)
    else if (!held.moved) this.add(pointAt(this.frame, event))
  }

  nearest() {
    const far = ({x, y}) => Math.max(Math.abs(x - this.cursor.x), Math.abs(y - this.cursor.y))
    const [first] = [...this.state.points].sort((a, b) => far(a) - far(b))
    return first && far(first) <= REACH ? first : null
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return
    const by = STEP[event.key]
    if (by) this.go(by.map((v) => v * (event.shiftKey ? LEAP : 1)))
    else if (event.key === 'Enter') this.toggle()
    else if (event.key === ' ') this.take()
    else return
    event.preventDefault()
    this.mark.hidden = false
  }

  go([dx, dy]) {
    this.cursor = {x: bounded(this.cursor.x + dx, X), y: bounded(this.cursor.y + dy, Y)}
    if (this.carried) Object.assign(this.carried, this.cursor)
    const {mean, deviation} = this.page.predict(this.cursor.x)
    const here = this.carried ? tr('carries a point') : this.nearest() ? tr('on a point') : ''
    const place = [named(this.cursor), here].filter(Boolean).join(', ')
    this.page.say(tr('{place}; prediction {mean} ± {half}.', {place, mean: near(mean[0]), half: near(1.96 * deviation[0])}))
    this.page.changed()
  }

  toggle() {
    const point = this.nearest()
    this.carried = null
    if (point) this.remove(point)
    else this.add(this.cursor)
  }

  take() {
    const {carried} = this
    this.carried = carried ? null : this.nearest()
    if (carried) this.page.commit(tr('Point moved to {place};', {place: named(carried)}))
    else if (this.carried) { Object.assign(this.carried, this.cursor); this.page.commit(tr('Point picked up;')) }
    else this.page.say(tr('There is no point here to pick up.'))
  }
}
