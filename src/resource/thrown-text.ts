/** What was thrown, as one text: an error's message, and whatever else can be thrown (nothing at all, too) in words. Never throws. */
export function thrownText(error: unknown): string {
  try {
    if (error instanceof Error) return String(error.message) || error.name;
    if (error === undefined || error === null) return `${String(error)} was thrown instead of an error`;
    return String(error);
  } catch {
    // Without a prototype, say, it cannot even be turned into text.
    return 'something without a text was thrown instead of an error';
  }
}
