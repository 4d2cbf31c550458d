import { boundedText } from '../resource/index.ts';
import type { Condition } from './port.ts';

/** Longest message of a condition, or of a child in the inventory. */
export const messageLimit = 32_768;
/** Longest reason. */
export const reasonLimit = 1_024;
/** Longest note of an event. */
export const noteLimit = 1_024;

/** Sets a condition in a list that is being edited. The transition time moves only with the status. */
export function setCondition(
  conditions: Condition[],
  next: Pick<Condition, 'type' | 'status' | 'reason' | 'message' | 'observedGeneration'>,
  timestamp: string,
): void {
  // JavaScript authors hand over anything.
  const message = boundedText(plainText(next.message), messageLimit);
  const place = conditions.findIndex((condition) => condition.type === next.type);
  const before = conditions[place];
  const lastTransitionTime = before !== undefined && before.status === next.status ? before.lastTransitionTime : timestamp;
  const condition: Condition = { ...next, reason: conditionReason(plainText(next.reason)), message, lastTransitionTime };
  if (place < 0) conditions.push(condition);
  else conditions[place] = condition;
}

/** Text of whatever an author handed over in its place. */
export function plainText(value: unknown): string {
  if (typeof value === 'string') return value;
  return value === undefined || value === null || typeof value === 'object' ? '' : String(value);
}

/** A reason in the form that `metav1.Condition` asks for: a letter, then letters, digits and `_`. */
function conditionReason(text: string): string {
  const reason = text
    .replace(/[^A-Za-z0-9_,:]/g, '')
    .replace(/^[^A-Za-z]+/, '')
    .slice(0, reasonLimit)
    .replace(/[,:]+$/, '');
  return reason === '' ? 'Unknown' : reason;
}

export function removeCondition(conditions: Condition[], type: string): void {
  const place = conditions.findIndex((condition) => condition.type === type);
  if (place >= 0) conditions.splice(place, 1);
}

export function findCondition(conditions: readonly Condition[], type: string): Condition | undefined {
  return conditions.find((condition) => condition.type === type);
}
