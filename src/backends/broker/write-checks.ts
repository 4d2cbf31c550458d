import type { Metadata, Pointer, Resource, SteadystateError } from '../../resource/index.ts';
import type { DestroyOptions, UpdateOptions } from '../../state/index.ts';
import { incarnationConflict, ownerConflict, pendingFinalizers, phaseConflict, versionConflict } from '../../state/index.ts';
import type { Entry, StagedWrite } from './collection.ts';
import { refusal } from './commit-queue.ts';

/** What the next write of a resource stands on: the staged value, else the durable one. */
export function currentOf(entry: Entry): Resource | undefined {
  return entry.staged === undefined ? entry.value : entry.staged.value;
}

/** Why an update to `metadata` cannot be: owner, version, phase, in this order. */
export function updateConflict(metadata: Metadata, stored: Metadata, options: UpdateOptions = {}): SteadystateError | undefined {
  const { owner = '', expectedPhase = 'running', currentVersion = metadata.version } = options;
  if (owner !== stored.owner) return ownerConflict(metadata, owner, stored.owner);
  if (metadata.owner !== '' && metadata.owner !== stored.owner) return ownerConflict(metadata, metadata.owner, stored.owner);
  if (currentVersion !== stored.version) return versionConflict(metadata, currentVersion, stored.version);
  if (expectedPhase !== 'any' && stored.phase !== expectedPhase) return phaseConflict(metadata, expectedPhase, stored.phase);
  if (stored.phase === 'tearingDown' && metadata.phase === 'running') return phaseConflict(metadata, 'running', stored.phase);
  return undefined;
}

/** Why a destroy cannot be: owner, incarnation, finalizers, in this order. */
export function destroyConflict(pointer: Pointer, stored: Metadata, options: DestroyOptions = {}): SteadystateError | undefined {
  const { owner = '', uid } = options;
  if (owner !== stored.owner) return ownerConflict(pointer, owner, stored.owner);
  if (uid !== undefined && uid !== stored.uid) return incarnationConflict(pointer, uid, stored.uid);
  if (stored.finalizers.length > 0) return pendingFinalizers(pointer, stored.finalizers);
  return undefined;
}

/** A write that loses against a staged one learns of it only when that one's fate is known. */
export async function lose(staged: StagedWrite | undefined, error: SteadystateError): Promise<never> {
  const failure = await staged?.settled;
  throw failure === undefined ? error : refusal(failure, error.pointer);
}
