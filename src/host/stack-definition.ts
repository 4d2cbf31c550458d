import { z } from 'zod';
import type { ResourceDefinition } from '../resource/index.ts';
import { defineResource } from '../resource/index.ts';
import type { CompanionSpec } from '../workload/index.ts';
import { statusDefinition } from '../workload/index.ts';
import { hostGroup } from './names.ts';
import { commandSchema, environmentSchema, modeSchema, plainText, readySchema, restartSchema, stopSchema } from './shared-schemas.ts';
import { stackIssues } from './stack-issues.ts';
import { jsonSchemaOf, readable, strict } from './strict-schema.ts';

const serviceName = z
  .string()
  .regex(
    /^[A-Za-z0-9]([A-Za-z0-9_-]{0,61}[A-Za-z0-9])?$/,
    'the name of a service is 1 to 63 letters, digits, - or _, with a letter or digit at both ends',
  );

/** Text, any data that is written as JSON, or `{ content | json, mode }`. */
const fileSchema = z.unknown().superRefine((value, context) => {
  if (!isFileWithMode(value)) return;
  if ('content' in value && typeof value.content !== 'string')
    context.addIssue({ code: 'custom', path: ['content'], message: 'expected text; use json for data' });
  const mode = modeSchema.safeParse(value.mode);
  if (!mode.success) for (const issue of mode.error.issues) context.addIssue({ code: 'custom', path: ['mode'], message: issue.message });
});

const serviceSchema = strict({
  /** Runs in the stack's directory. */
  command: commandSchema,
  environment: environmentSchema.optional(),
  /** By path below the stack's directory. */
  files: z.record(z.string(), fileSchema).optional(),
  /** Services that must be ready before this one starts for the first time. */
  dependsOn: z.array(z.string()).optional(),
  ready: readySchema.optional(),
  restart: restartSchema.optional(),
  /** Files of this service whose change restarts it. */
  restartOn: z.array(z.string()).optional(),
  stop: stopSchema.optional(),
});

const stackSchema = strict({
  /** Where the services run and their files are; relative to the folder of the file that declared the stack. */
  directory: plainText.min(1, 'expected a folder, as in ./data'),
  services: z.record(serviceName, serviceSchema),
}).superRefine((spec, context) => {
  for (const { path, message } of stackIssues(spec)) context.addIssue({ code: 'custom', path: [...path], message });
});

export type StackInput = z.input<typeof stackSchema>;
export type StackSpec = z.output<typeof stackSchema>;
export type ServiceSpec = z.output<typeof serviceSchema>;

/** Services of one machine. */
export const stackDefinition: ResourceDefinition<StackSpec, StackInput> = defineResource({
  type: `Stacks.${hostGroup}`,
  spec: readable(stackSchema),
  jsonSchema: jsonSchemaOf(stackSchema),
  status: { type: `StackStatuses.${hostGroup}` },
  printColumns: [
    { name: 'READY', jsonPath: '{.status.conditions[?(@.type=="Ready")].status}' },
    { name: 'REASON', jsonPath: '{.status.conditions[?(@.type=="Ready")].reason}' },
    { name: 'DIRECTORY', jsonPath: '{.status.extra.directory.path}' },
  ],
});

export const stackStatusDefinition: ResourceDefinition<CompanionSpec> = statusDefinition(stackDefinition);

/** A file given as an object that says its mode too; any other object is the file's own content. */
export function isFileWithMode(value: unknown): value is { readonly mode: unknown; readonly content?: unknown; readonly json?: unknown } {
  if (typeof value !== 'object' || value === null || Array.isArray(value) || !('mode' in value)) return false;
  const keys = Object.keys(value);
  return keys.length === 2 && ('content' in value || 'json' in value);
}
