"""Seven real tables whose rows come from different domains: what is learned in all but one."""
