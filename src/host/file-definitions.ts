import { z } from 'zod';
import type { ResourceDefinition } from '../resource/index.ts';
import { defineResource, digest } from '../resource/index.ts';
import { hostGroup } from './names.ts';
import { companionReadiness } from './process-definition.ts';
import { absolutePath, modeSchema } from './shared-schemas.ts';
import { jsonSchemaOf, readable, strict } from './strict-schema.ts';

const directorySchema = strict({
  path: absolutePath,
  /** The folder that it must lie in, links followed. */
  within: absolutePath,
});

const fileSchema = strict({
  path: absolutePath,
  /** The folder that it must lie in, links followed. */
  within: absolutePath,
  content: z.string(),
  /** @default '0644' */
  mode: modeSchema.optional(),
});

const pathStatus = {
  /** The incarnation of the resource. */
  uid: z.string(),
  /** Digest of the spec that this was computed from. */
  observed: z.string(),
  path: z.string(),
  ready: z.boolean(),
  reason: z.string(),
  message: z.string(),
};

const directoryStatusSchema = strict({
  ...pathStatus,
  state: z.enum(['Creating', 'Present', 'Failed']),
  /** It was not there before: it is removed again once it is empty. */
  created: z.boolean(),
});

const fileStatusSchema = strict({
  ...pathStatus,
  state: z.enum(['Writing', 'Written', 'Failed']),
  /** How often the file was found changed and put right. */
  corrections: z.number().int(),
  /** What is at the path was written by us. */
  ours: z.boolean(),
  /** What was there before, and was not ours, is kept under this path. */
  kept: z.string().optional(),
});

export type DirectorySpec = z.output<typeof directorySchema>;
export type DirectoryStatus = z.output<typeof directoryStatusSchema>;
export type FileInput = z.input<typeof fileSchema>;
export type FileSpec = z.output<typeof fileSchema>;
export type FileStatus = z.output<typeof fileStatusSchema>;

/** A folder that must be there. */
export const directoryDefinition: ResourceDefinition<DirectorySpec> = defineResource({
  type: `Directories.${hostGroup}`,
  aliases: ['dir', 'dirs'],
  spec: readable(directorySchema),
  jsonSchema: jsonSchemaOf(directorySchema),
  status: { type: `DirectoryStatuses.${hostGroup}` },
  ready: (resource, status) => companionReadiness(digest(resource.spec), status),
  printColumns: [
    { name: 'STATE', jsonPath: '{.status.state}' },
    { name: 'PATH', jsonPath: '{.spec.path}' },
    { name: 'REASON', jsonPath: '{.status.reason}' },
  ],
});

export const directoryStatusDefinition: ResourceDefinition<DirectoryStatus> = defineResource({
  type: `DirectoryStatuses.${hostGroup}`,
  spec: readable(directoryStatusSchema),
  jsonSchema: jsonSchemaOf(directoryStatusSchema),
  printColumns: [
    { name: 'STATE', jsonPath: '{.spec.state}' },
    { name: 'CREATED', jsonPath: '{.spec.created}' },
    { name: 'REASON', jsonPath: '{.spec.reason}' },
  ],
});

/** A file with a content and a mode. */
export const fileDefinition: ResourceDefinition<FileSpec, FileInput> = defineResource({
  type: `Files.${hostGroup}`,
  spec: readable(fileSchema),
  jsonSchema: jsonSchemaOf(fileSchema),
  status: { type: `FileStatuses.${hostGroup}` },
  ready: (resource, status) => companionReadiness(digest(resource.spec), status),
  printColumns: [
    { name: 'STATE', jsonPath: '{.status.state}' },
    { name: 'MODE', jsonPath: '{.spec.mode}' },
    { name: 'CORRECTIONS', jsonPath: '{.status.corrections}' },
    { name: 'PATH', jsonPath: '{.spec.path}' },
    { name: 'REASON', jsonPath: '{.status.reason}' },
  ],
});

export const fileStatusDefinition: ResourceDefinition<FileStatus> = defineResource({
  type: `FileStatuses.${hostGroup}`,
  spec: readable(fileStatusSchema),
  jsonSchema: jsonSchemaOf(fileStatusSchema),
  printColumns: [
    { name: 'STATE', jsonPath: '{.spec.state}' },
    { name: 'CORRECTIONS', jsonPath: '{.spec.corrections}' },
    { name: 'REASON', jsonPath: '{.spec.reason}' },
  ],
});
