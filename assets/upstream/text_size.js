// The type of figures grows by the page's variables (scant_dashboard/template.py), which do not reach
// what is written in them beside their axes: names of glyphs, whose sizes Bokeh takes from the model
// alone, and the figures on color bars, whose axis is no part of the page. No issue of Bokeh's is known
// to us. Private API of Bokeh 3.9, pinned in pyproject.toml.
const growTexts = () => {
  const {Text, TextVector} = Bokeh.require('core/visuals/text')
  const scale = () => parseFloat(getComputedStyle(document.documentElement).fontSize) / 16
  const LEAST = 24 // pixels, that are read from the back row
  const grown = (size) => size.replace(/^([\d.]+)(px|em)$/, (_, n, unit) => `${Math.max(LEAST, n * (unit === 'em' ? 14 : 1) * scale())}px`)
  const {get_text_font_size} = Text.prototype, {values, font_value} = TextVector.prototype
  Text.prototype.get_text_font_size = function () {
    const size = get_text_font_size.call(this)
    return size === this.text_font_size.get_value() ? grown(size) : size
  }
  TextVector.prototype.values = function (i) {
    const all = values.call(this, i)
    return {...all, font_size: grown(all.font_size)}
  }
  TextVector.prototype.font_value = function (i) {
    return font_value.call(this, i).replace(/[\d.]+px/, grown)
  }
}
