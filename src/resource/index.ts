export { Bytes } from './bytes.ts';
export type * from './definition.ts';
export type * from './draft.ts';
export type { ConflictReason, ErrorCode, ErrorDetails, InvalidIssue } from './errors.ts';
export { SteadystateError } from './errors.ts';
export type * from './queries.ts';
export type * from './resource.ts';
export { undefinedVersion } from './resource.ts';
export type { StandardSchemaV1 } from './standard-schema.ts';
