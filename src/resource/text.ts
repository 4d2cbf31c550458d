/** Whether text is well-formed Unicode: no half of a surrogate pair stands alone. */
export function isWellFormed(text: string): boolean {
  return !loneSurrogate.test(text);
}

const loneSurrogate = /[\uD800-\uDBFF](?![\uDC00-\uDFFF])|(?<![\uD800-\uDBFF])[\uDC00-\uDFFF]/;

/**
 * Text from anywhere as it may be stored: at most so many UTF-16 units, cut between characters, with `ending` in the place of
 * what was cut. Half of a surrogate pair becomes U+FFFD.
 */
export function boundedText(text: string, limit: number, ending = ''): string {
  const cut = text.length > limit ? text.slice(0, limit - ending.length).replace(/[\uD800-\uDBFF]$/, '') + ending : text;
  return isWellFormed(cut) ? cut : cut.replace(/\p{Surrogate}/gu, '\uFFFD');
}

/** Length in UTF-8 bytes of well-formed text. */
export function utf8Length(text: string): number {
  let length = text.length;
  for (let index = 0; index < text.length; index++) {
    const unit = text.charCodeAt(index);
    if (unit < 0x80) continue;
    // A surrogate pair is two units and four bytes: one byte more for each half.
    length += unit < 0x800 || (unit >= 0xd800 && unit <= 0xdfff) ? 1 : 2;
  }
  return length;
}

/**
 * Orders text by its UTF-8 bytes. UTF-16 units order the same except that surrogates (U+10000 and up) stand
 * below U+E000–U+FFFF there, so units from 0xD800 up are moved before they are compared.
 */
export function compareIds(left: string, right: string): number {
  if (left === right) return 0;
  const shared = Math.min(left.length, right.length);
  for (let index = 0; index < shared; index++) {
    let a = left.charCodeAt(index);
    let b = right.charCodeAt(index);
    if (a === b) continue;
    if (a >= 0xd800 && b >= 0xd800) {
      a = a >= 0xe000 ? a - 0x800 : a + 0x2000;
      b = b >= 0xe000 ? b - 0x800 : b + 0x2000;
    }
    return a - b;
  }
  return left.length - right.length;
}

/** Shows text from outside on one line: what a terminal obeys, what nobody sees and what turns the reading order become visible. */
export function visibleText(text: string): string {
  return replaceHidden(text, (code) => {
    if (code === 0x0a) return '\\n';
    if (code === 0x0d) return '\\r';
    if (code === 0x09) return '\\t';
    return code > 0xff ? `\\u${code.toString(16).padStart(4, '0')}` : `\\x${code.toString(16).padStart(2, '0')}`;
  });
}

/**
 * Replaces what must not reach a reader as it is: control characters, direction marks, characters without any width (but for
 * the joiners that scripts and emoji need), tags, and lone surrogates.
 */
export function replaceHidden(text: string, write: (codePoint: number) => string): string {
  return text.replace(hidden, (character) => write(character.codePointAt(0) ?? 0));
}

const hidden =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for.
  /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\u{e0000}-\u{e007f}]|\p{Surrogate}/gu;
