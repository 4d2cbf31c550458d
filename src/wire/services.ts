import * as control from './control-messages.ts';
import * as state from './messages.ts';
import { encodedMethod, method } from './method.ts';

const stateName = 'cosi.resource.State';
/** The service that COSI clients speak. Answers with resources are encoded by the server, once per resource. */
export const stateService = {
  get: encodedMethod(`/${stateName}/Get`, state.getRequestCodec, state.resourceAnswerCodec),
  list: encodedMethod(`/${stateName}/List`, state.listRequestCodec, state.resourceAnswerCodec, true),
  create: encodedMethod(`/${stateName}/Create`, state.createRequestCodec, state.resourceAnswerCodec),
  update: encodedMethod(`/${stateName}/Update`, state.updateRequestCodec, state.resourceAnswerCodec),
  destroy: method(`/${stateName}/Destroy`, state.ownedPointerRequestCodec, state.emptyCodec),
  watch: encodedMethod(`/${stateName}/Watch`, state.watchRequestCodec, state.watchResponseCodec, true),
  teardown: method(`/${stateName}/Teardown`, state.ownedPointerRequestCodec, state.teardownResponseCodec),
  teardownAndDestroy: method(`/${stateName}/TeardownAndDestroy`, state.ownedPointerRequestCodec, state.emptyCodec),
} as const;

const controlName = 'steadystate.v1.Control';
/** Our own service beside it. */
export const controlService = {
  info: method(`/${controlName}/Info`, state.emptyCodec, control.infoResponseCodec),
  validate: method(`/${controlName}/Validate`, control.validateRequestCodec, control.validateResponseCodec),
  readiness: method(`/${controlName}/Readiness`, state.getRequestCodec, control.readinessResponseCodec),
  notes: method(`/${controlName}/Notes`, state.getRequestCodec, control.notesResponseCodec),
  finalizers: method(`/${controlName}/Finalizers`, state.getRequestCodec, control.finalizersResponseCodec),
  waitForRevision: method(`/${controlName}/WaitForRevision`, control.waitForRevisionRequestCodec, state.emptyCodec),
  graph: method(`/${controlName}/Graph`, state.emptyCodec, control.graphResponseCodec),
  destroyIncarnation: method(`/${controlName}/DestroyIncarnation`, control.destroyIncarnationRequestCodec, state.emptyCodec),
  releaseFinalizer: method(`/${controlName}/ReleaseFinalizer`, control.releaseFinalizerRequestCodec, control.releaseFinalizerResponseCodec),
  fencedWrite: method(`/${controlName}/FencedWrite`, control.fencedWriteRequestCodec, control.fencedWriteResponseCodec),
  watchKinds: encodedMethod(`/${controlName}/WatchKinds`, control.watchKindsRequestCodec, state.watchResponseCodec, true),
  watchNamespaces: encodedMethod(`/${controlName}/WatchNamespaces`, control.watchNamespacesRequestCodec, state.watchResponseCodec, true),
  storeCheck: method(`/${controlName}/StoreCheck`, control.storeCheckRequestCodec, control.storeTaskResponseCodec, true),
  storeCompact: method(`/${controlName}/StoreCompact`, control.storeCompactRequestCodec, control.storeTaskResponseCodec, true),
  storeBackup: method(`/${controlName}/StoreBackup`, control.storeBackupRequestCodec, control.storeTaskResponseCodec, true),
  storeExport: encodedMethod(`/${controlName}/StoreExport`, state.emptyCodec, state.resourceAnswerCodec, true),
} as const;
