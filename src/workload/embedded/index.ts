export type { CompanionSpec } from './companion.ts';
export { statusDefinition } from './companion.ts';
export type { EmbeddedControllerOptions } from './embedded-controller.ts';
export { embeddedWorkloadController, embeddedWorkloadControllers } from './embedded-controller.ts';
export type { EmbeddedPortOptions } from './embedded-port.ts';
export { embeddedPort } from './embedded-port.ts';
export type { EventSpec } from './event-log.ts';
export { eventDefinition } from './event-log.ts';
export { resourceReadiness } from './readiness.ts';
