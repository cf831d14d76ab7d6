// Sentences in the language of the page (scant_dashboard/translate.py). The page brings the
// translations that its scripts need; without one a sentence stays English.
{
const language = document.querySelector('meta[name=language]')?.content ?? 'en'
const sentences = JSON.parse(document.getElementById('sentences')?.textContent || '{}')
document.documentElement.lang = language
const written = (sentence, values) => sentence.replace(/\{(\w+)\}/g, (_, name) =>
  typeof values[name] === 'number' ? values[name].toLocaleString(language) : values[name])

// tr('{n} of {all} answered', {n, all}); the English sentence, a literal, is the key.
window.tr = (sentence, values = {}) => written(sentences[sentence] ?? sentence, values)
window.ntr = (one, many, n, values = {}) => written((sentences[one] ?? [one, many])[n === 1 ? 0 : 1], {n, ...values})
// A number with so many decimals.
window.fixed = (number, digits) => number.toLocaleString(language, {minimumFractionDigits: digits, maximumFractionDigits: digits, useGrouping: false})
}
