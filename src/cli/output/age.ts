/** An age for people: 45s, 12m, 3h, 5d; as kubectl writes it. */
export function ageText(since: string, nowMs: number): string {
  const start = Date.parse(since);
  return Number.isNaN(start) ? '<unknown>' : durationText(nowMs - start);
}

export function durationText(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  if (seconds < 120) return `${seconds}s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 10) return seconds % 60 === 0 ? `${minutes}m` : `${minutes}m${seconds % 60}s`;
  if (minutes < 180) return `${minutes}m`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return `${hours}h`;
  return `${Math.floor(hours / 24)}d`;
}

/** How long something took, for people: below a second in milliseconds. */
export function elapsedText(ms: number): string {
  return ms < 1000 ? `${Math.max(0, Math.floor(ms))}ms` : durationText(ms);
}

/** Reads a duration: 500ms, 30s, 5m, 1h30m, or a bare number of seconds; milliseconds, `undefined` when it is none. */
export function parseDuration(text: string): number | undefined {
  if (/^[0-9]+(?:\.[0-9]+)?$/.test(text)) return Number(text) * 1000;
  if (!/^(?:[0-9]+(?:\.[0-9]+)?(?:ms|s|m|h|d))+$/.test(text)) return undefined;
  const units: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };
  return [...text.matchAll(/([0-9]+(?:\.[0-9]+)?)(ms|s|m|h|d)/g)].reduce(
    (sum, [, amount, unit]) => sum + Number(amount) * (units[unit as string] as number),
    0,
  );
}
