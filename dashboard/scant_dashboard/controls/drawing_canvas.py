"""A canvas for drawing with mouse, pen, finger or keyboard."""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import Any

import numpy as np
import param
from jaxtyping import Float
from panel.custom import JSComponent

from scant_dashboard.translate import later, tr

_STYLE = """
:host { display: block; }
.paper { position: relative; width: min(100%, 280px); }
canvas { display: block; width: 100%; height: auto; background: #fff; cursor: crosshair;
  border: 1px solid var(--line); border-radius: 6px; box-sizing: border-box; touch-action: none; }
canvas:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
i { position: absolute; width: 10px; height: 10px; margin: -7px 0 0 -7px; border: 2px solid #0072b2;
  border-radius: 50%; pointer-events: none; visibility: hidden; }
canvas:focus-visible + i { visibility: visible; }
i.down { background: #0072b2; }
p { font: 400 .875rem/1.45 var(--sans); color: var(--quiet); margin: 6px 0 0; max-width: 40ch; }
.unseen { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
"""

TEXTS = {
    "paper": later(
        "Paper to draw on. Arrow keys move the pen, space puts it down and lifts it, "
        "Delete empties the paper."
    ),
    "help": later(
        "Draw with mouse, pen or finger; or with the keyboard: arrows move, space puts the pen "
        "down and lifts it, Delete empties the paper."
    ),
    "down": later("pen down"),
    "up": later("pen up"),
    "empty": later("empty paper"),
}


class DrawingCanvas(JSComponent):
    """White paper and a pen; `ink` is updated after every stroke.

    Attributes:
        ink: Base64 of the drawing, one byte per pixel in row order, 255 for full ink; "" if empty.
        given: Initial image in the same form; `turn` is incremented with it.
        turn: Number of initial images so far, empty ones included.
        texts: `TEXTS` in the session's language.
    """

    ink = param.String("")
    given = param.String("")
    turn = param.Integer(0)
    texts = param.Dict(default={})
    wide = param.Integer(20, doc="Pixels of a row.")
    high = param.Integer(20, doc="Pixels of a column.")
    pen = param.Number(0.034, doc="Width of the pen, a share of the paper's.")

    _esm = """
    export function render({model, el}) {
      const fine = 14  // canvas pixels per image pixel
      const paper = document.createElement('div'), canvas = document.createElement('canvas')
      const mark = document.createElement('i'), help = document.createElement('p')
      const status = document.createElement('div')
      paper.className = 'paper'
      status.className = 'unseen'
      status.setAttribute('aria-live', 'polite')
      canvas.tabIndex = 0
      canvas.setAttribute('role', 'application')
      canvas.setAttribute('aria-label', model.texts.paper)
      help.textContent = model.texts.help
      paper.append(canvas, mark)
      el.replaceChildren(paper, help, status)
      const pen = canvas.getContext('2d', {willReadFrequently: true})
      let at = null, down = false, empty = true, waiting = 0

      const blank = () => {
        canvas.width = model.wide * fine
        canvas.height = model.high * fine
        pen.fillStyle = '#ffffff'
        pen.fillRect(0, 0, canvas.width, canvas.height)
        pen.strokeStyle = '#000000'
        pen.lineCap = pen.lineJoin = 'round'
        pen.lineWidth = Math.max(model.pen * canvas.width, 2)
        at = {x: canvas.width / 2, y: canvas.height / 2}
        down = false
        empty = true
        show()
      }
      const show = () => {
        mark.style.left = `${100 * at.x / canvas.width}%`
        mark.style.top = `${100 * at.y / canvas.height}%`
        mark.className = down ? 'down' : ''
      }
      const line = (to) => {
        pen.beginPath()
        pen.moveTo(at.x, at.y)
        pen.lineTo(to.x, to.y)
        pen.stroke()
        at = to
        empty = false
      }
      const send = () => {
        clearTimeout(waiting)
        if (empty) { model.ink = ''; return }
        const {data} = pen.getImageData(0, 0, canvas.width, canvas.height)
        let bytes = ''
        for (let y = 0; y < model.high; y++) for (let x = 0; x < model.wide; x++) {
          let sum = 0
          for (let j = 0; j < fine; j++) for (let i = 0; i < fine; i++)
            sum += 255 - data[4 * ((y * fine + j) * canvas.width + x * fine + i)]
          bytes += String.fromCharCode(Math.round(sum / fine / fine))
        }
        model.ink = btoa(bytes)
      }
      const sendSoon = () => { clearTimeout(waiting); waiting = setTimeout(send, 250) }
      const place = (event) => {
        const box = canvas.getBoundingClientRect()
        return {x: (event.clientX - box.left) / box.width * canvas.width,
                y: (event.clientY - box.top) / box.height * canvas.height}
      }
      canvas.addEventListener('pointerdown', (event) => {
        if (event.button) return
        canvas.setPointerCapture(event.pointerId)
        at = place(event)
        down = true
        line({x: at.x + 0.1, y: at.y})
      })
      canvas.addEventListener('pointermove', (event) => {
        if (!down || !canvas.hasPointerCapture(event.pointerId)) return
        for (const one of event.getCoalescedEvents?.() ?? [event]) line(place(one))
      })
      const lift = () => { if (down) { down = false; show(); send() } }
      canvas.addEventListener('pointerup', lift)
      canvas.addEventListener('pointercancel', lift)
      const moves = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1]}
      canvas.addEventListener('keydown', (event) => {
        const move = moves[event.key]
        if (move) {
          const step = canvas.width / 24, clip = (v, max) => Math.min(Math.max(v, 0), max)
          const to = {x: clip(at.x + move[0] * step, canvas.width),
                      y: clip(at.y + move[1] * step, canvas.height)}
          if (down) { line(to); sendSoon() } else at = to
        } else if (event.key === ' ') {
          down = !down
          status.textContent = down ? model.texts.down : model.texts.up
          if (down) line({x: at.x + 0.1, y: at.y}); else send()
        } else if (event.key === 'Delete' || event.key === 'Backspace') {
          blank()
          status.textContent = model.texts.empty
          send()
        } else return
        event.preventDefault()
        event.stopPropagation()  // present mode uses these keys, too
        show()
      })
      const begin = () => {
        blank()
        if (model.given) {
          const bytes = atob(model.given)
          for (let y = 0; y < model.high; y++) for (let x = 0; x < model.wide; x++) {
            const gray = 255 - bytes.charCodeAt(y * model.wide + x)
            pen.fillStyle = `rgb(${gray},${gray},${gray})`
            pen.fillRect(x * fine, y * fine, fine, fine)
          }
          empty = false
        }
      }
      model.on('turn', () => setTimeout(begin, 0))  // after all properties of the message are set
      begin()
    }
    """

    def __init__(self, **params: Any) -> None:
        params.setdefault("sizing_mode", "stretch_width")
        params.setdefault("margin", 0)
        params.setdefault("stylesheets", [_STYLE])
        params.setdefault("texts", {name: tr(text) for name, text in TEXTS.items()})
        super().__init__(**params)

    @property
    def image(self) -> Float[np.ndarray, "h w"] | None:
        """The drawing, 1 for full ink; None if the paper is empty."""
        if not self.ink:
            return None
        levels = np.frombuffer(b64decode(self.ink), np.uint8)
        if len(levels) != self.wide * self.high:  # from a paper of another size
            return None
        return levels.reshape(self.high, self.wide) / 255.0

    def lay_out(self, image: Float[np.ndarray, "h w"] | None, size: tuple[int, int]) -> None:
        """Replace the paper, with an image on it or empty.

        Args:
            image: Image with 1 for full ink; None for empty paper.
            size: Height and width of `image` and of later drawings, in pixels.
        """
        given = ""
        if image is not None:
            levels = np.round(255 * np.clip(image, 0, 1)).astype(np.uint8)
            given = b64encode(levels.tobytes()).decode()
        self.param.update(ink=given, given=given, high=size[0], wide=size[1], turn=self.turn + 1)
