// Of a run as one file: puts the parts of each moment of the recording in their places.
(async () => {
  const player = document.querySelector('.player')
  const [button, slider, words] = ['button', 'input', 'output'].map((name) => player.querySelector(name))
  const packed = Uint8Array.from(atob(document.getElementById('film').textContent), (c) => c.charCodeAt(0))
  const unpacked = new Blob([packed]).stream().pipeThrough(new DecompressionStream('gzip'))
  const {steps, keys, texts, frames} = await new Response(unpacked).json()
  const calm = matchMedia('(prefers-reduced-motion: reduce)')
  const last = frames.length - 1
  let at = last
  let timer = 0

  const show = (moment) => {
    const changed = keys.flatMap((key, i) => frames[moment][i] === frames[at][i] ? []
      : [[`[data-part="${key}"]`, texts[frames[moment][i]]]])
    Figures.put(Object.fromEntries(changed))
    at = moment
    slider.value = at
    words.value = at === last ? 'end of training' : `step ${steps[at]} of ${steps.at(-1)}`
    slider.setAttribute('aria-valuetext', words.value)
  }
  const halt = () => {
    clearInterval(timer)
    timer = 0
    button.textContent = calm.matches ? 'Next step' : 'Play'
  }
  const on = () => {
    show(at === last ? 0 : at + 1)
    if (at === last) halt()
  }
  button.addEventListener('click', () => {
    if (timer) { halt(); return }
    on()
    if (calm.matches) return // moves by one step, when it is told to
    button.textContent = 'Pause'
    timer = setInterval(on, Math.max(120, 10_000 / last))
  })
  slider.addEventListener('input', () => { halt(); show(slider.valueAsNumber) })
  calm.addEventListener('change', halt)

  // What is printed is the end, with all that is folded.
  let folded = []
  let kept = last
  addEventListener('beforeprint', () => {
    halt()
    kept = at
    show(last)
    folded = [...document.querySelectorAll('details:not([open])')]
    for (const one of folded) one.open = true
  })
  addEventListener('afterprint', () => {
    for (const one of folded) one.open = false
    show(kept)
  })
  halt()
  show(last)
  player.hidden = false
  Figures.all() // for paper, on which all of them are
})()
