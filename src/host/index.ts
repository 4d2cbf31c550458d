/**
 * The host operator: a workload `Stacks.host.steadystate.dev` describes the services of one machine, and small controllers
 * make its folders, files and processes real.
 */
export type { Leftovers } from './directory-controller.ts';
export type { DirectorySpec, DirectoryStatus, FileSpec, FileStatus } from './file-definitions.ts';
export { directoryDefinition, directoryStatusDefinition, fileDefinition, fileStatusDefinition } from './file-definitions.ts';
export type { HostOperator, HostOperatorOptions } from './host-operator.ts';
export { hostDefinitions, hostOperator } from './host-operator.ts';
export { baseDirectoryAnnotation, hostGroup, restartAnnotation, stacksController } from './names.ts';
export type { ProcessExitStatus, ProcessSpec, ProcessState, ProcessStatus } from './process-definition.ts';
export { processDefinition, processStatusDefinition } from './process-definition.ts';
export type { ServiceSpec, StackInput, StackSpec } from './stack-definition.ts';
export { stackDefinition, stackStatusDefinition } from './stack-definition.ts';
export type { ServiceOutput } from './stack-tools.ts';
export { declaredPaths, listLeftovers, requestRestart, stackDirectory, stackOutputs } from './stack-tools.ts';
export type { StackExtra, StackWorkloadOptions } from './stack-workload.ts';
export { stackWorkload } from './stack-workload.ts';
