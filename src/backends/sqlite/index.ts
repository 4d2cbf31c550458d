export type { ImportOptions, RestoreOptions, StoreFileOptions, StoreImport, StoreRepair, StoreRestore } from './replace-store.ts';
export { importStore, repairStore, restoreStore } from './replace-store.ts';
export { isDatabaseFile, refuseOtherThanFile } from './replaceable.ts';
export type { SqliteState, SqliteStateOptions } from './sqlite-state.ts';
export { openSqliteState } from './sqlite-state.ts';
export { storeFileAdmin } from './store-admin.ts';
