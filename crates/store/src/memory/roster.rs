//! Who is there, and what they tell each other.

use super::Inner;
use crate::{Beat, Bytes, Keeper, News, NodeId, NodeSeen, Roster};

impl Inner {
    pub(super) fn beat(&mut self, beat: Beat) -> Roster {
        let before = self.nodes.get(&beat.node).filter(|seen| seen.expires_at > self.now);
        let (was_over, draining) =
            (before.is_none(), self.nodes.get(&beat.node).is_some_and(|seen| seen.draining));
        let Beat { node, keeper, started_at, version, ttl, report } = beat;
        if let Some(report) = report {
            self.reports.insert(node.clone(), report);
        }
        let expires_at = self.now + ttl;
        self.nodes.insert(node.clone(), NodeSeen { node, keeper, started_at, version, expires_at, draining });
        if was_over {
            self.tell(&News::Roster);
        }
        Roster { was_over, ..self.roster() }
    }

    pub(super) fn roster(&self) -> Roster {
        let mut nodes: Vec<NodeSeen> = self.nodes.values().cloned().collect();
        nodes.sort_by_key(|seen| seen.keeper);
        let leases = self.leases.values().filter_map(|(_, held)| held.clone()).collect();
        Roster { now: self.now, was_over: false, nodes, leases }
    }

    pub(super) fn reports(&self) -> Vec<(Keeper, Bytes)> {
        let alive = self.nodes.values().filter(|seen| seen.expires_at > self.now);
        let mut reports: Vec<_> =
            alive.filter_map(|seen| Some((seen.keeper, self.reports.get(&seen.node)?.clone()))).collect();
        reports.sort_by_key(|(keeper, _)| *keeper);
        reports
    }

    pub(super) fn strike(&mut self, node: &NodeId, leaves: bool) {
        if !leaves && self.nodes.get(node).is_some_and(|seen| seen.expires_at > self.now) {
            return;
        }
        self.nodes.remove(node);
        self.reports.remove(node);
        for (_, held) in self.leases.values_mut() {
            if held.as_ref().is_some_and(|lease| lease.node == *node) {
                *held = None;
            }
        }
        self.tell(&News::Roster);
    }

    pub(super) fn drain(&mut self, node: &NodeId, draining: bool) -> bool {
        let Some(seen) = self.nodes.get_mut(node) else { return false };
        seen.draining = draining;
        self.tell(&News::Roster);
        true
    }

    pub(super) fn tell(&mut self, news: &News) {
        self.listeners.retain(|listener| listener.send(news.clone()).is_ok());
    }
}
