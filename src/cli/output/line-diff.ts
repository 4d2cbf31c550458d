/** Lines of two texts beside each other: kept, removed and added, by a longest common subsequence. */
export function lineDiff(before: string, after: string): readonly { readonly sign: ' ' | '-' | '+'; readonly line: string }[] {
  const left = before === '' ? [] : before.replace(/\n$/, '').split('\n');
  const right = after === '' ? [] : after.replace(/\n$/, '').split('\n');
  // What is the same at both ends needs no table.
  let start = 0;
  while (start < left.length && start < right.length && left[start] === right[start]) start++;
  let end = 0;
  while (end < left.length - start && end < right.length - start && left[left.length - 1 - end] === right[right.length - 1 - end]) end++;
  const a = left.slice(start, left.length - end);
  const b = right.slice(start, right.length - end);
  const middle = a.length * b.length > 4_000_000 ? replaced(a, b) : compared(a, b);
  const kept = (lines: readonly string[]) => lines.map((line) => ({ sign: ' ' as const, line }));
  return [...kept(left.slice(0, start)), ...middle, ...kept(end === 0 ? [] : left.slice(-end))];
}

type Line = ReturnType<typeof lineDiff>[number];

function replaced(a: readonly string[], b: readonly string[]): readonly Line[] {
  return [...a.map((line) => ({ sign: '-' as const, line })), ...b.map((line) => ({ sign: '+' as const, line }))];
}

function compared(a: readonly string[], b: readonly string[]): readonly Line[] {
  const lengths = Array.from({ length: a.length + 1 }, () => new Uint32Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      const row = lengths[i] as Uint32Array;
      const below = lengths[i + 1] as Uint32Array;
      row[j] = a[i] === b[j] ? (below[j + 1] as number) + 1 : Math.max(below[j] as number, row[j + 1] as number);
    }
  }
  const lines: Line[] = [];
  let i = 0;
  let j = 0;
  while (i < a.length && j < b.length) {
    if (a[i] === b[j]) {
      lines.push({ sign: ' ', line: a[i] as string });
      i++;
      j++;
    } else if (((lengths[i + 1] as Uint32Array)[j] as number) >= ((lengths[i] as Uint32Array)[j + 1] as number))
      lines.push({ sign: '-', line: a[i++] as string });
    else lines.push({ sign: '+', line: b[j++] as string });
  }
  return [...lines, ...replaced(a.slice(i), b.slice(j))];
}

/** Only what differs, with some lines around it; `…` where lines were left out. */
export function diffText(before: string, after: string, around = 3): string {
  const lines = lineDiff(before, after);
  const near = new Set<number>();
  lines.forEach(({ sign }, index) => {
    if (sign === ' ') return;
    for (let place = index - around; place <= index + around; place++) near.add(place);
  });
  const shown: string[] = [];
  let left = false;
  lines.forEach(({ sign, line }, index) => {
    if (near.has(index)) {
      if (left) shown.push('  …');
      left = false;
      shown.push(`${sign} ${line}`);
    } else left = true;
  });
  return shown.map((line) => `${line}\n`).join('');
}
