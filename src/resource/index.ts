export { Bytes } from './bytes.ts';
export { defineResource, singular } from './define-resource.ts';
export type * from './definition.ts';
export { allNames, DefinitionRegistry } from './definition-registry.ts';
export { canonicalText, comparableDigests, digest, digestScheme } from './digest.ts';
export type * from './draft.ts';
export { sameResource, sameSet, sameValue } from './equality.ts';
export * from './error-predicates.ts';
export type { ConflictReason, ErrorCode, ErrorDetails, InvalidIssue } from './errors.ts';
export { SteadystateError } from './errors.ts';
export { compileIdQuery } from './id-query.ts';
export {
  assembleMetadata,
  assembleResource,
  checkKind,
  checkPointer,
  makeMetadata,
  makeResource,
  maximumNameBytes,
  nameProblem,
} from './make-resource.ts';
export type { NamespaceSpec, ResourceDefinitionSpec } from './meta.ts';
export { describeDefinition, metaNamespace, namespaceDefinition, resourceDefinitionDefinition } from './meta.ts';
export { finishDraft, OpenDraft, openDraft } from './open-draft.ts';
export { emptyMetadata, isTombstone, kindText, pointerOf, pointerText, thisIncarnation, tombstone } from './pointers.ts';
export type * from './queries.ts';
export type { CompiledQuery, QueryPlan } from './query.ts';
export { compileQuery, matchesQuery, parseLabelNumber, parseLabelQuery, planQuery } from './query.ts';
export type * from './resource.ts';
export { undefinedVersion } from './resource.ts';
export type { StandardSchemaV1 } from './standard-schema.ts';
export { fromTagged, toTagged } from './tagged.ts';
export { boundedText, compareIds, isWellFormed, replaceHidden, utf8Length, visibleText } from './text.ts';
export { thrownText } from './thrown-text.ts';
export { appendPath, freezeSpec, invalid, isFrozenValue, maximumDepth } from './values.ts';
