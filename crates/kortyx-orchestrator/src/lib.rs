//! The Kortyx agent: runs, answers, discovery, chat turns and the worker, over any store.
