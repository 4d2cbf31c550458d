import type { InvalidIssue } from '../resource/index.ts';
import { invalid, isWellFormed, maximumNameBytes, utf8Length, visibleText } from '../resource/index.ts';
import type { CreateOptions, DestroyOptions, UpdateOptions } from './options.ts';

const texts = ['owner', 'actor', 'uid', 'currentVersion'] as const;

/** Throws Invalid for options of a write that could not be stored, or compared with what is stored. */
export function checkWriteOptions(options: CreateOptions & UpdateOptions & DestroyOptions): void {
  let issues: InvalidIssue[] | undefined;
  for (const path of texts) {
    const value: unknown = options[path];
    if (value === undefined || value === '') continue;
    if (typeof value === 'string' && isWellFormed(value)) continue;
    const found = typeof value === 'string' ? 'half a surrogate pair' : value === null ? 'null' : typeof value;
    issues ??= [];
    issues.push({ path, message: `expected well-formed text, found ${found}` });
  }
  // It travels in a header, and is kept beside each finalizer.
  const bytes = typeof options.actor === 'string' ? utf8Length(options.actor) : 0;
  if (bytes > maximumNameBytes) {
    issues ??= [];
    issues.push({ path: 'actor', message: `must be at most ${maximumNameBytes} UTF-8 bytes, found ${bytes}` });
  }
  const phase: unknown = options.expectedPhase;
  if (phase !== undefined && phase !== 'running' && phase !== 'tearingDown' && phase !== 'any') {
    issues ??= [];
    issues.push({ path: 'expectedPhase', message: `expected running, tearingDown or any, found ${visibleText(String(phase))}` });
  }
  if (issues !== undefined) throw invalid(issues);
}

/** Throws Invalid for what is no revision to wait for. */
export function checkRevision(revision: number): void {
  if (!Number.isSafeInteger(revision) || revision < 0)
    throw invalid([{ path: 'revision', message: `expected a whole number from 0, found ${revision}` }]);
}
