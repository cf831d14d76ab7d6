// Guess first: a curve is drawn from a known prior, some points of it are shown, and the lengthscale is
// to be guessed with the page's own slider.
import {drawnExample, uniform} from './random.js'
import {Y} from './state.js'
import {answer, counted} from './words.js'

const POINTS = 12, PARAMS = {kernel: 'rbf', lengthscale: 1, noise: 0.1, outputscale: 1, period: 3}
const RANGE = [0.4, 3] // of hidden lengthscales; longer ones than a third of the plot say too little

/** The question of this number, the same for everybody: {number, lengthscale, curve, points}. */
export const questionOf = (number) => {
  for (let seed = 1000 * number; ; seed++) {
    const lengthscale = RANGE[0] * (RANGE[1] / RANGE[0]) ** uniform(seed)()
    const example = drawnExample(seed, {...PARAMS, lengthscale}, POINTS)
    const inside = [...example.curve, ...example.points.map(({y}) => y)].every((y) => y > 0.95 * Y[0] && y < 0.95 * Y[1])
    if (inside) return {number, lengthscale, ...example}
  }
}

/**
 * The switch, the question and its buttons.
 *
 * `page` has `ask(question, params)`, called with null when the switch goes off, and `reveal()`, which
 * returns the guess and the evidence over lengthscales.
 */
export class GuessFirst {
  constructor(root, page) {
    const part = (selector) => root.querySelector(selector)
    Object.assign(this, {
      page, box: part('input'), form: part('.form'), text: part('.question'), go: part('.go'),
      next: part('.next'), answer: part('.answer'), number: 1,
    })
    this.box.addEventListener('change', () => { if (this.box.checked) this.begin(this.number); else this.end() })
    this.go.addEventListener('click', () => this.reveal())
    this.next.addEventListener('click', () => this.begin(this.number + 1))
  }

  begin(number) {
    this.number = number > 1000 ? 1 : number
    this.question = questionOf(this.number)
    this.box.checked = true
    this.form.hidden = false
    this.go.disabled = false
    this.answer.textContent = ''
    this.text.textContent = tr('{points} of a curve drawn from a Gaussian process with outputscale 1, observed with noise 0.1. Which lengthscale does it have? Set the slider, then reveal.', {points: counted(POINTS)})
    this.page.ask(this.question, PARAMS)
  }

  /** Switch off without a word to the page. */
  close() {
    this.box.checked = false
    this.form.hidden = true
  }

  end() {
    this.close()
    this.page.ask(null)
  }

  reveal() {
    this.go.disabled = true
    const {guess, curve} = this.page.reveal()
    this.answer.textContent = answer(this.question.lengthscale, guess, curve)
  }
}
