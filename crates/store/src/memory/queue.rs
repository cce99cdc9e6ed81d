//! Queues, their settings, and how much is in them.

use super::Inner;
use crate::{LiveState, NewQueue, News, Queue, QueueDepth, QueueKey, QueueSettings};

impl Inner {
    pub(super) fn create_queue(&mut self, queue: NewQueue) -> Queue {
        let same = |known: &&Queue| known.made.namespace == queue.namespace && known.made.name == queue.name;
        if let Some(known) = self.queues.values().find(same) {
            return known.clone();
        }
        let key = QueueKey(self.keys);
        self.keys += 1;
        self.queues.insert(key, Queue { queue: key, made: queue.clone() });
        self.tell(&News::Queue(key));
        Queue { queue: key, made: queue }
    }

    pub(super) fn update_queue(&mut self, queue: QueueKey, settings: QueueSettings) -> Option<Queue> {
        let known = self.queues.get_mut(&queue);
        let updated = known.map(|known| {
            known.made.settings = settings;
            known.clone()
        });
        if let Some(known) = &updated {
            self.forget_windows(queue, &known.made.settings);
            self.tell(&News::Queue(queue));
        }
        updated
    }

    pub(super) fn queues(&self, namespace: Option<&str>) -> Vec<Queue> {
        let wanted = |queue: &&Queue| namespace.is_none_or(|wanted| &*queue.made.namespace == wanted);
        let mut queues: Vec<Queue> = self.queues.values().filter(wanted).cloned().collect();
        queues.sort_by_key(|queue| (queue.made.namespace.clone(), queue.made.name.clone()));
        queues
    }

    pub(super) fn queue_depth(&self, queue: QueueKey) -> QueueDepth {
        let mut depth = QueueDepth::default();
        for live in self.live.values().filter(|live| live.made.queue == queue) {
            match live.state {
                LiveState::Ready => depth.ready += 1,
                LiveState::BackingOff { .. } => depth.backing_off += 1,
                LiveState::Running { .. } => depth.running += 1,
            }
        }
        depth.first_made_at = self.first_in_line(queue).map(|live| live.made.created_at);
        depth
    }
}
