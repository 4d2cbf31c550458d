export { checkReadyPhase } from './check-ready.ts';
export { completePhase, deletionCompletePhase } from './complete.ts';
export { createOrUpdate, createResourcesPhase, handleResourcePhaseExit } from './create-resources.ts';
export { registerDeleteHooks } from './delete-hooks.ts';
export { deleteResourcesPhase } from './delete-resources.ts';
export { dependencyPhase } from './dependency.ts';
