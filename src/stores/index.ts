export type { OpenedStore, OpenStoreOptions } from './open-store.ts';
export { openStore } from './open-store.ts';
export type { StoreUrl } from './store-url.ts';
export { parseStoreUrl, storeUrlText } from './store-url.ts';
