"""The rules of `validate` for a scheduler's file: each kind of mistake with its stable code, its reason and its fix.

docs/reference/validate.md is generated from these texts. A code never changes its meaning and is never reused.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """The severity of a finding."""

    #: The RM refuses the file, ignores a part of it, or interprets a part differently from its text.
    ERROR = "error"
    #: The RM applies the setting, but it causes applications to be rejected or to wait, or has no effect.
    WARNING = "warning"
    #: Probably unintended, but harmless.
    HINT = "hint"


@dataclass(frozen=True, slots=True)
class Rule:
    """One kind of mistake.

    ``refused``: the RM refuses to start or to refresh. ``why`` and ``fix`` are for the reference page.
    """

    code: str
    level: Level
    title: str
    why: str
    fix: str
    refused: bool = False


_E, _W, _H = Level.ERROR, Level.WARNING, Level.HINT
#: Title, reason and fix of the rule that the files of both schedulers share.
_OF_ACCESS_LISTS = (
    "an access list with a name that is none",
    "An access list is users, one space, groups, both lists between commas; only * alone is everybody. 'bob,*' and "
    "'alice;bob' have names that no user has.",
    "Write 'u1,u2 g1,g2', or *.",
)

#: Every kind of mistake, in the order of the codes.
_ALL = (
    # ---- any file
    Rule(
        "YF001",
        _E,
        "not a readable XML document",
        "The RM's parser stops at it. A DOCTYPE is refused on purpose: entities could read files of the RM.",
        "Mend the XML at that line; save the file in an encoding that its first line names; remove a DOCTYPE.",
        refused=True,
    ),
    Rule(
        "YF002",
        _E,
        "not a scheduler's file",
        "An allocation file begins with `<allocations>`, a Hadoop configuration with `<configuration>`.",
        "Give the file that yarn.scheduler.fair.allocation.file names, or capacity-scheduler.xml.",
        refused=True,
    ),
    Rule(
        "YF003",
        _E,
        "Spark's fairscheduler.xml",
        "Spark has a file of the same name and the same outermost element, with `<pool>` elements of its own "
        "(`schedulingMode` FIFO or FAIR, `minShare`). It shares cores among the jobs of one Spark application, and "
        "YARN does not read it.",
        "Give it to Spark (spark.scheduler.allocation.file), and write queues for YARN.",
    ),
    Rule(
        "YF004",
        _E,
        "text between elements",
        "Text that stands in no element of its own is ignored.",
        "Put it into an element, or remove it.",
    ),
    # ---- Capacity Scheduler: refused
    Rule(
        "YF101",
        _E,
        "a number that cannot be read",
        "Hadoop parses these settings when it starts and stops at what is no number (NumberFormatException). Integers "
        "have no fraction, no separators and no units; some take no white space.",
        "Write a plain number.",
        refused=True,
    ),
    Rule(
        "YF102",
        _E,
        "the cluster's smallest and largest container do not fit",
        "CapacitySchedulerConfigValidator: the minimum must be above 0 and at most the maximum.",
        "Lower yarn.scheduler.minimum-allocation-*, or raise the maximum.",
        refused=True,
    ),
    Rule(
        "YF103",
        _E,
        "a class that Hadoop does not have, or not for this",
        "The class is loaded by its name when the RM starts. Names of Hadoop's own packages are checked here; other "
        "classes must be on the RM's class path.",
        "Correct the name.",
        refused=True,
    ),
    Rule(
        "YF104",
        _E,
        "further resource types with the DefaultResourceCalculator",
        "It compares memory alone, and CapacityScheduler.initResourceCalculator refuses it where yarn.resource-types "
        "names more.",
        "Use org.apache.hadoop.yarn.util.resource.DominantResourceCalculator.",
        refused=True,
    ),
    Rule(
        "YF105",
        _E,
        "a multi-node sorting policy without a class",
        "Each name in multi-node-sorting.policy needs multi-node-sorting.policy.NAME.class and no negative interval.",
        "Set the class, or remove the policy.",
        refused=True,
    ),
    Rule(
        "YF106",
        _E,
        "a resource type that the RM refuses",
        "ResourceUtils: each name in yarn.resource-types once, none of memory, memory-mb and vcores, letters first; "
        "the type in capitals; yarn.io/gpu and yarn.io/fpga without a unit.",
        "Name it as the message says.",
        refused=True,
    ),
    Rule(
        "YF107",
        _E,
        "a scheduling monitor that does not run",
        "SchedulingMonitorManager: each policy in yarn.resourcemanager.scheduler.monitor.policies (where it is not "
        "set, preemption) is a class of Hadoop's with an interval above 0; all of them need the Capacity Scheduler.",
        "Write the class's full name, or an interval; with the Fair Scheduler set "
        "yarn.resourcemanager.scheduler.monitor.enable to false.",
        refused=True,
    ),
    Rule(
        "YF108",
        _E,
        "a setting of yarn-site.xml with which the RM does not start",
        "ResourceManager.validateConfigs, FairScheduler.validateConf and the services of the RM check these at their "
        "start: attempts and increments above 0, an expiry of nodes above their heartbeat, names that they know.",
        "Write what the message says.",
        refused=True,
    ),
    Rule(
        "YF110",
        _E,
        "no queues below root",
        "Root must have children, or create them by itself.",
        "Name queues in yarn.scheduler.capacity.root.queues.",
        refused=True,
    ),
    Rule(
        "YF111",
        _E,
        "a reservable queue with children",
        "Only a leaf can be reservable.",
        "Remove reservable, or make a leaf of it.",
        refused=True,
    ),
    Rule(
        "YF112",
        _E,
        "one queue, two kinds of capacities in its labels",
        "In legacy queue mode a queue's capacities are absolute for all labels or for none.",
        "Write them in one kind.",
        refused=True,
    ),
    Rule(
        "YF113",
        _E,
        "a capacity that cannot be read",
        "A capacity is a percentage (40), a weight (2w) or absolute resources ([memory=8192,vcores=8]); white space "
        "around a weight, a per cent sign and units that are not Hadoop's make it none.",
        "Write one of the three.",
        refused=True,
    ),
    Rule(
        "YF114",
        _E,
        "a percentage outside 0 to 100",
        "Capacities are parts of the parent's.",
        "Write per cent of the parent.",
        refused=True,
    ),
    Rule(
        "YF115",
        _E,
        "a weight outside 0 to 10000",
        "Hadoop's bounds; only ratios between siblings matter.",
        "Scale the weights of the siblings.",
        refused=True,
    ),
    Rule(
        "YF116",
        _E,
        "a maximum-capacity that cannot be read",
        "It is a percentage (-1 and no setting are 100) or absolute resources; never a weight.",
        "Write per cent of the parent, or [memory=8192,vcores=8] beside an absolute capacity.",
        refused=True,
    ),
    Rule(
        "YF117",
        _E,
        "absolute resources above their limit",
        "A queue's absolute capacity is at most its maximum, and its maximum at most its parent's.",
        "Lower the one, or raise the other.",
        refused=True,
    ),
    Rule(
        "YF118",
        _E,
        "a maximum-allocation that cannot be read",
        "It names resources that the RM knows, with whole amounts and the units M or G.",
        "Write memory-mb=8192,vcores=4.",
        refused=True,
    ),
    Rule(
        "YF119",
        _E,
        "a queue's largest container is above the cluster's",
        "QueueAllocationSettings: it may only be lower than yarn.scheduler.maximum-allocation-*.",
        "Lower it, or raise the cluster's in yarn-site.xml.",
        refused=True,
    ),
    Rule(
        "YF120",
        _E,
        "a label's property that names no setting",
        "Hadoop cuts the label out of the name and fails where nothing follows it.",
        "Write QUEUE.accessible-node-labels.LABEL.capacity; the labels themselves are the value of "
        "QUEUE.accessible-node-labels.",
        refused=True,
    ),
    Rule(
        "YF121",
        _E,
        "a label that the parent cannot access",
        "A queue's labels are a subset of its parent's.",
        "Add the label to the parent, or remove it here.",
        refused=True,
    ),
    Rule(
        "YF122",
        _E,
        "a default label that the queue cannot access",
        "Every label in default-node-label-expression, also an inherited one, must be accessible to the leaf.",
        "Add it to accessible-node-labels, or remove the expression.",
        refused=True,
    ),
    Rule(
        "YF130",
        _E,
        "an unknown state",
        "A state is RUNNING or STOPPED, without white space.",
        "Write one of the two.",
        refused=True,
    ),
    Rule(
        "YF131",
        _E,
        "RUNNING below STOPPED",
        "A stopped parent stops its children: one that says RUNNING contradicts it. Without a state it follows.",
        "Stop the child too, or start the parent.",
        refused=True,
    ),
    Rule(
        "YF132",
        _E,
        "a default lifetime above the maximum",
        "Also where one of the two comes from a queue above.",
        "Lower default-application-lifetime, or raise maximum-application-lifetime.",
        refused=True,
    ),
    Rule(
        "YF133",
        _E,
        "a user's weight out of range",
        "A weight is at least 0 and at most 100 / minimum-user-limit-percent: with the default of 100, at most 1.",
        "Lower the weight, or minimum-user-limit-percent.",
        refused=True,
    ),
    Rule(
        "YF134",
        _E,
        "an ordering policy that the queue cannot have",
        "Leaves order applications (fifo, fair), parents order queues (utilization, priority-utilization).",
        "Write one of the right kind.",
        refused=True,
    ),
    Rule(
        "YF135",
        _E,
        "acl_application_max_priority that cannot be read",
        "Each group in brackets needs max_priority and a user or group, and knows no other keys.",
        "Write [user=alice group=g1 max_priority=10 default_priority=3].",
        refused=True,
    ),
    Rule(
        "YF136",
        _E,
        "an absolute template below a queue that is not absolute",
        "The leaf-queue-template's capacity is of its queue's kind.",
        "Write per cent in the template, or an absolute capacity for the queue.",
        refused=True,
    ),
    Rule(
        "YF137",
        _E,
        "a template with a label that its queue has not",
        "The management policy refuses it.",
        "Give the queue a capacity for the label, or remove the template's.",
        refused=True,
    ),
    Rule(
        "YF140",
        _E,
        "siblings with different kinds of capacities",
        "In legacy queue mode the children of one parent have percentages, weights or absolute resources, all alike.",
        "Give them one kind, or set yarn.scheduler.capacity.legacy-queue-mode.enabled to false.",
        refused=True,
    ),
    Rule(
        "YF141",
        _E,
        "absolute resources in a part of the tree only",
        "Below root a parent and its children are both absolute, or neither is. A queue that creates its children by "
        "itself cannot be absolute: a refresh is refused while it has none.",
        "Write the whole tree in one kind.",
        refused=True,
    ),
    Rule(
        "YF142",
        _E,
        "children above their parent's absolute resources",
        "The sum of the children's capacities is at most the parent's.",
        "Raise the parent's, or lower the children's.",
        refused=True,
    ),
    Rule(
        "YF143",
        _E,
        "children's percentages do not sum to 100",
        "In float32, to within 0.05. A sum of 0 is allowed below a capacity of 0, or with allow-zero-capacity-sum.",
        "Make them sum to 100, or use weights.",
        refused=True,
    ),
    Rule(
        "YF144",
        _E,
        "a label's percentages do not sum to 100",
        "As soon as one property names a label of a queue, the queues of that parent need capacities for it that sum "
        "to 100, and root has all of every label: a maximum alone, or a label on one of two siblings, is refused.",
        "Give all siblings a capacity for the label (0 where they have none of it), and the queues above too.",
        refused=True,
    ),
    Rule(
        "YF145",
        _E,
        "an absolute queue with a label that its parent has not",
        "Hadoop fails with a NullPointerException when it computes the queue's share of that label.",
        "Give the queues above a capacity for the label too.",
        refused=True,
    ),
    Rule(
        "YF146",
        _E,
        "a resource that the RM does not know, in a parent's capacity",
        "In flexible mode a parent's resources are shared among its children one by one; one that yarn.resource-types "
        "does not name ends the start with a ResourceNotFoundException. A leaf's is ignored.",
        "Name it in yarn.resource-types, or remove it.",
        refused=True,
    ),
    Rule(
        "YF147",
        _E,
        "a maximum that is a weight",
        "In flexible mode (legacy-queue-mode.enabled false) the RM computes no maximum from a weight: it fails with an "
        "IllegalStateException.",
        "Write per cent of the parent, or resources.",
        refused=True,
    ),
    Rule(
        "YF150",
        _E,
        "yarn.scheduler.queue-placement-rules that cannot be used",
        "It lists user-group, app-name or classes, each once.",
        "Correct the list.",
        refused=True,
    ),
    Rule(
        "YF151",
        _E,
        "an unknown mapping-rule-format",
        "The format is legacy or json, in lower case and without white space.",
        "Write one of the two.",
        refused=True,
    ),
    Rule(
        "YF152",
        _E,
        "a mapping that cannot be read",
        "Legacy mappings are u:USER:QUEUE or g:GROUP:QUEUE between commas; mapping-rule-json is a document with a list "
        "of rules, each with type, matches and policy.",
        "Write it in that form.",
        refused=True,
    ),
    Rule(
        "YF153",
        _E,
        "a mapping to a queue that cannot take applications",
        "The target must be a leaf, or be below a queue that creates children by itself. A path with variables needs "
        "its fixed part to be a parent queue. A short name must belong to one queue alone.",
        "Name a leaf by its full path.",
        refused=True,
    ),
    Rule(
        "YF154",
        _E,
        "a workflow priority mapping that cannot be read",
        "It is WORKFLOW:QUEUE:PRIORITY with an integer.",
        "Write it in that form.",
        refused=True,
    ),
    Rule(
        "YF160",
        _E,
        "children below a queue with auto-create-child-queue",
        "The RM starts with it, and every refresh fails with a ClassCastException: nothing can be changed any more "
        "without a restart.",
        "Remove the children, or use auto-queue-creation-v2, which allows both.",
        refused=True,
    ),
    # ---- Capacity Scheduler: ignored, or interpreted differently
    Rule(
        "YF201",
        _E,
        "an unknown setting",
        "Hadoop asks for the properties that it knows and never looks at others: a misspelt name has no effect.",
        "Correct the name, or remove the property.",
    ),
    Rule(
        "YF202",
        _E,
        "a setting of a queue that does not exist",
        "A queue exists where its parent's .queues lists it; a setting for another path is ignored.",
        "List the queue, or correct its path (paths begin with root).",
    ),
    Rule(
        "YF203",
        _E,
        "a flag that is neither true nor false",
        "Hadoop takes any other text for the setting's default.",
        "Write true or false.",
    ),
    Rule(
        "YF204",
        _E,
        "a number that fails when it is used",
        "The RM starts with it and throws when it needs the setting.",
        "Write a plain number.",
    ),
    Rule(
        "YF205",
        _E,
        "a limit for ApplicationMasters below 0",
        "Then one ApplicationMaster runs at a time.",
        "Write 0 to 1.",
    ),
    Rule(
        "YF206",
        _E,
        "a user-limit-factor that gives no user anything",
        "0 and negative values other than -1 (no limit).",
        "Write -1 for no limit, or a factor above 0.",
    ),
    Rule(
        "YF207",
        _E,
        "minimum-user-limit-percent outside 0 to 100",
        "It is the part of the queue that a user gets at least.",
        "Write per cent.",
    ),
    Rule(
        "YF208",
        _E,
        "a limit below which no application ever runs",
        "max-parallel-apps of 0 or less keeps every application waiting.",
        "Write 1 or more, or remove it.",
    ),
    Rule(
        "YF209",
        _E,
        "maximum-applications of 0 or less",
        "A queue's 0 rejects every submission; a negative one is taken for none. The scheduler's own is multiplied "
        "with each queue's share.",
        "Write 1 or more, or remove it.",
    ),
    Rule(
        "YF210",
        _E,
        "global-queue-max-application that is ignored",
        "Only values above 0 count.",
        "Write 1 or more, or remove it.",
    ),
    Rule(
        "YF211",
        _E,
        "a capacity of root",
        "Root has the whole cluster, whatever is written.",
        "Remove it.",
    ),
    Rule(
        "YF212",
        _E,
        "a weight that is none",
        "NaN and negative weights leave the queue without capacity.",
        "Write 1w.",
    ),
    Rule(
        "YF213",
        _E,
        "a maximum-capacity outside 0 to 100, or below the capacity",
        "Hadoop takes it, and computes limits from it that nobody meant.",
        "Write per cent of the parent, at least the capacity.",
    ),
    Rule(
        "YF214",
        _E,
        "an absolute maximum beside another kind of capacity",
        "In legacy queue mode the maximum counts as 100 per cent then.",
        "Write per cent, or an absolute capacity too.",
    ),
    Rule(
        "YF215",
        _E,
        "a child that is named wrongly",
        "A child is named once, by its own name without its parent's path.",
        "Name each child once, without dots.",
    ),
    Rule("YF216", _E, *_OF_ACCESS_LISTS),
    Rule(
        "YF217",
        _W,
        "a value that refers to another property",
        "It depends on properties that are in other files, or on the RM's environment: it cannot be checked here.",
        "Write the value itself.",
    ),
    Rule(
        "YF218",
        _E,
        "a part of absolute resources that is ignored",
        "Names are memory, memory-mb, vcores and those of yarn.resource-types; units are Hadoop's (Mi, Gi, Ti). "
        "Without memory the whole value counts as none.",
        "Write [memory=8192,vcores=8].",
    ),
    Rule(
        "YF219",
        _E,
        "a queue without a capacity",
        "It gets 0 per cent: it is served after all others.",
        "Give it a capacity.",
    ),
    Rule(
        "YF220",
        _E,
        "an element that is no property",
        "Hadoop reads <property> elements with <name> and <value>.",
        "Write <property>.",
    ),
    Rule(
        "YF221",
        _E,
        "a property without a name or a value",
        "It is ignored, as is one with an empty value.",
        "Give it both, or remove it.",
    ),
    Rule(
        "YF222",
        _E,
        "a property that appears twice",
        "The last one counts; after one with <final>true</final>, the first.",
        "Remove one.",
    ),
    Rule(
        "YF223",
        _W,
        "a property that is not the scheduler's",
        "Most settings of the RM have no effect in this file.",
        "Write it into yarn-site.xml.",
    ),
    Rule(
        "YF224",
        _W,
        "a class that is not Hadoop's",
        "The RM does not start unless it is on its class path.",
        "Check the name, and that every RM has the class.",
    ),
    Rule(
        "YF225",
        _W,
        "a property behind a final one",
        "Once a property has <final>true</final>, later values of it are ignored.",
        "Remove the later one.",
    ),
    Rule(
        "YF226",
        _W,
        "a resource type that yarn.resource-types must name",
        "Hadoop ignores resources that it does not know.",
        "Check it against yarn-site.xml or resource-types.xml (--yarn-site FILE does).",
    ),
    # ---- Capacity Scheduler: traps
    Rule(
        "YF301",
        _W,
        "a priority that nothing asks for",
        "Queue priorities count only where the parent's ordering-policy is priority-utilization.",
        "Set the parent's ordering-policy to priority-utilization, or remove the priority.",
    ),
    Rule(
        "YF302",
        _W,
        "root is STOPPED",
        "Every submission is rejected.",
        "Write RUNNING when the cluster is to take applications.",
    ),
    Rule(
        "YF303",
        _W,
        "no root.default and no mapping",
        "Applications that name no queue go to `default` and are rejected.",
        "Add root.default, or a mapping (queue-mappings) for everybody.",
    ),
    Rule(
        "YF304",
        _W,
        "a share so small that no application fits",
        "Without a limit of its own, a queue takes maximum-applications x its share of the cluster: below 1, every "
        "submission is rejected.",
        "Set global-queue-max-application, or the queue's maximum-applications.",
    ),
    Rule(
        "YF305",
        _W,
        "maximum-am-resource-percent above 1",
        "It is a part of the queue, not per cent.",
        "Write 0.1 for a tenth.",
    ),
    Rule(
        "YF306",
        _H,
        "one ApplicationMaster at a time",
        "The part of the queue for ApplicationMasters is smaller than a usual one (1.5 GB); Hadoop lets one run "
        "nevertheless.",
        "Raise maximum-am-resource-percent.",
    ),
    Rule(
        "YF307",
        _W,
        "a capacity for a label that the queue cannot access",
        "Without accessible-node-labels (its own or inherited) the queue never gets a container there.",
        "Add the label to accessible-node-labels.",
    ),
    Rule(
        "YF308",
        _W,
        "an access list below a queue that is open to everybody",
        "Permissions are inherited: who may submit to root may submit everywhere, and root is open to all by default.",
        "Set root's acl_submit_applications (acl_administer_queue) to one space, or to those who may use every queue.",
    ),
    Rule(
        "YF309",
        _W,
        "an access list that reads a user as a group",
        "Behind the first space stand groups: 'alice, bob' is user alice and group bob.",
        "Write 'alice,bob' for two users.",
    ),
    Rule(
        "YF310",
        _H,
        "a weight of 0",
        "The queue is served after all others.",
        "Raise it if that is not meant.",
    ),
    Rule(
        "YF311",
        _W,
        "a limit that cannot be reached",
        "The queue above has a lower one.",
        "Lower it, or raise the other.",
    ),
    Rule(
        "YF312",
        _H,
        "percentages that do not sum to 100 in flexible mode",
        "Hadoop takes them. Above 100 the queues that are computed last get less than is written; below, a part of the "
        "cluster is guaranteed to nobody.",
        "Make them sum to 100.",
    ),
    Rule(
        "YF313",
        _W,
        "no part for ApplicationMasters",
        "With maximum-am-resource-percent 0 one application of the queue runs at a time.",
        "Write 0.1, or more.",
    ),
    Rule(
        "YF314",
        _W,
        "a largest container above Hadoop's default",
        "The RM refuses one above yarn.scheduler.maximum-allocation-*: 8192 MB, 4 vcores unless the site says more.",
        "Check it against yarn-site.xml (--yarn-site FILE does).",
    ),
    Rule(
        "YF316",
        _W,
        "the queue for everybody is stopped",
        "Applications that name no queue go to root.default, which takes none.",
        "Write RUNNING, or map applications elsewhere.",
    ),
    Rule(
        "YF317",
        _W,
        "a largest container of nothing",
        "A request above the queue's maximum-allocation-* is refused, an ApplicationMaster's first.",
        "Write the largest container, or leave it to yarn.scheduler.maximum-allocation-*.",
    ),
    Rule(
        "YF318",
        _W,
        "a template of a queue below which none is created",
        "Templates are for the queues that applications create; without auto-create-child-queue.enabled or "
        "auto-queue-creation-v2.enabled there are none.",
        "Set it to true, or remove the template.",
    ),
    Rule(
        "YF319",
        _W,
        "creation of queues beside percentages or absolute resources",
        "In legacy queue mode auto-queue-creation-v2 creates queues with weights, beside queues with weights alone.",
        "Give the children weights, or set legacy-queue-mode.enabled to false.",
    ),
    # ---- Fair Scheduler: refused
    Rule(
        "YF401",
        _E,
        "a value that cannot be read",
        "The loader throws: the RM does not start; a running one keeps its old queues, with a line in its log.",
        "Write a value of the form that the message names.",
        refused=True,
    ),
    Rule(
        "YF402",
        _E,
        "an element without text",
        "Hadoop takes the text of the element and fails where there is none.",
        "Write a value, or remove the element.",
        refused=True,
    ),
    Rule(
        "YF403",
        _E,
        "a queue without a usable name",
        "A name is not empty and has no dot: the path of a queue is the nesting of its elements.",
        "Name it, and nest it inside its parent's element.",
        refused=True,
    ),
    Rule(
        "YF404",
        _E,
        "queues beside the root queue",
        "Where the root queue is written, it is the only element at the top.",
        "Put the others inside root.",
        refused=True,
    ),
    Rule(
        "YF405",
        _E,
        "a parent with a leaf's settings",
        "maxAMShare and reservation are for leaves.",
        "Give it to the leaves.",
        refused=True,
    ),
    Rule(
        "YF406",
        _E,
        "fifo as the default policy",
        "Parents cannot be fifo, and the default holds for them too.",
        "Give fifo to single leaves.",
        refused=True,
    ),
    Rule(
        "YF407",
        _E,
        "placement rules that Hadoop refuses",
        "Rules are known by name, all can be reached, and the last one places every application or rejects it.",
        "End with <rule name='default'/> or <rule name='reject'/>.",
        refused=True,
    ),
    # ---- Fair Scheduler: ignored, or interpreted differently
    Rule(
        "YF501",
        _E,
        "an unknown element",
        "The RM ignores it (or takes <ueue> for <queue>).",
        "Correct the name, or remove it.",
    ),
    Rule(
        "YF502",
        _E,
        "an unknown attribute, or one without effect",
        "The RM reads name, type='parent', and create and queue of placement rules.",
        "Correct or remove it.",
    ),
    Rule(
        "YF503",
        _E,
        "an element with more than text",
        "Hadoop reads the first piece of text alone.",
        "Write plain text.",
    ),
    Rule(
        "YF504",
        _E,
        "an element that appears twice",
        "The last one counts.",
        "Keep one.",
    ),
    Rule(
        "YF505",
        _E,
        "a queue or a user that appears twice",
        "The settings of both are mixed.",
        "Keep one.",
    ),
    Rule(
        "YF506",
        _E,
        "a name that the RM reads otherwise",
        "White space at the ends is cut off, and only 'root' is the root queue.",
        "Write the name as it is meant.",
    ),
    Rule(
        "YF507",
        _E,
        "a queue that the RM does not make",
        "Its policy does not fit its parent's: the RM logs it and goes on without the queue.",
        "Give parents drf or fair, drf only below drf, fifo only to leaves.",
    ),
    Rule(
        "YF508",
        _E,
        "a default that is hidden by another setting",
        "The root queue's own setting, or the newer name of the same, counts.",
        "Keep one.",
    ),
    Rule(
        "YF509",
        _E,
        "a weight outside the range that Hadoop handles",
        "NaN hangs the RM; negative, infinite, very large and very small weights make shares go wrong or vanish.",
        "Scale the weights of the siblings.",
    ),
    Rule(
        "YF510",
        _E,
        "a number outside its range",
        "Hadoop cuts it, or no application ever runs.",
        "Write a number of the range.",
    ),
    Rule(
        "YF511",
        _E,
        "a resource that is read otherwise than it is written",
        "Hadoop drops what it does not understand: percentages of minima, decimals, separators in numbers.",
        "Write '4096 mb, 4 vcores'.",
    ),
    Rule(
        "YF512",
        _E,
        "a minimum above the maximum",
        "The maximum is raised to it.",
        "Lower the minimum, or raise the maximum.",
    ),
    Rule(
        "YF513",
        _E,
        "a user without a limit, or without a usable name",
        "<user> is for <maxRunningApps>.",
        "Write both, or remove it.",
    ),
    Rule(
        "YF514",
        _E,
        "a placement rule that does less than is written",
        "One inner rule counts, and an invalid default queue is replaced with root.default.",
        "Keep one inner rule; name a leaf.",
    ),
    Rule(
        "YF515",
        _E,
        "maximum resources without vcores",
        "Hadoop cuts the missing amount to 32 bits, which makes -1 vcores: nothing ever runs.",
        "Write vcores too.",
    ),
    Rule("YF516", _E, *_OF_ACCESS_LISTS),
    Rule(
        "YF517",
        _E,
        "an element in the wrong place",
        "Defaults and placement rules stand directly inside <allocations>, a queue's settings inside the queue; "
        "elsewhere they are ignored.",
        "Move it, or write the element that the place has for it.",
    ),
    # ---- Fair Scheduler: traps
    Rule(
        "YF601",
        _W,
        "a maximum of 0 vcores or no memory",
        "No container fits: every application waits for ever, or is rejected. Hadoop's own sample file has it.",
        "Write how many vcores the queue may use.",
    ),
    Rule(
        "YF602",
        _W,
        "an access list below a queue that is open to everybody",
        "Permissions are inherited, and the root queue is open to all unless it has lists of its own.",
        "Write <queue name='root'><aclSubmitApps> </aclSubmitApps>... (one space: nobody).",
    ),
    Rule(
        "YF603",
        _W,
        "an access list that reads a user as a group",
        "Behind the first space stand groups: 'alice, bob' is user alice and group bob.",
        "Write 'alice,bob' for two users.",
    ),
    Rule(
        "YF604",
        _W,
        "a placement rule that names a parent queue",
        "A parent takes no applications: those that the rule places are rejected.",
        "Name a leaf.",
    ),
    Rule(
        "YF605",
        _W,
        "a queue that no rule of the file places into",
        "Without create, an application for a queue that does not exist is placed by the next rule, or rejected.",
        "Add the queue, or allow its creation.",
    ),
    Rule(
        "YF606",
        _W,
        "preemption that never begins",
        "A threshold has no effect without its time-out, which is infinite by default.",
        "Set defaultFairSharePreemptionTimeout, or the queue's fairSharePreemptionTimeout.",
    ),
    Rule(
        "YF607",
        _W,
        "nothing may be preempted",
        "allowPreemptionFrom is false for every queue: time-outs and thresholds have no effect.",
        "Allow it for the queues that may lend.",
    ),
    Rule(
        "YF608",
        _W,
        "a time-out that looks like milliseconds",
        "Preemption time-outs are seconds: 60000 is 16 hours.",
        "Write seconds.",
    ),
    Rule(
        "YF609",
        _W,
        "minima above what the queue above may have",
        "They cannot all be met.",
        "Lower the minima, or raise the parent's maximum.",
    ),
    Rule(
        "YF610",
        _W,
        "a limit that cannot be reached",
        "The queue above has a lower one.",
        "Lower it, or raise the other.",
    ),
    Rule(
        "YF611",
        _W,
        "no application ever starts",
        "A limit of 0 applications, or an AM share of 0.",
        "Raise it if that is not meant.",
    ),
    Rule(
        "YF612",
        _W,
        "too little for one ApplicationMaster",
        "maxAMShare of the queue's maximum is smaller than a usual ApplicationMaster (1.5 GB): none ever starts.",
        "Raise maxAMShare (-1.0: no limit) or maxResources.",
    ),
    Rule(
        "YF613",
        _H,
        "a weight of 0",
        "The queue gets what its minimum share says, and what others leave.",
        "Raise it if that is not meant.",
    ),
    Rule(
        "YF614",
        _W,
        "more than the whole cluster",
        "100% is all there is.",
        "Write at most 100%.",
    ),
    Rule(
        "YF615",
        _W,
        "a queue below root that is called root",
        "Its path is root.root; applications that name root do not mean it.",
        "Rename it.",
    ),
    Rule(
        "YF616",
        _W,
        "a weight of the root queue",
        "Root has no siblings: its weight has no effect.",
        "Remove it.",
    ),
    Rule(
        "YF617",
        _H,
        "a queue name with white space",
        "The RM uses it as it is written; commands and metrics have it in quotes.",
        "Rename it.",
    ),
    Rule(
        "YF618",
        _W,
        "a resource type that yarn.resource-types must name",
        "The RM refuses the file unless yarn.resource-types names it.",
        "Check it against yarn-site.xml or resource-types.xml (--yarn-site FILE does).",
    ),
)
RULES: dict[str, Rule] = {rule.code: rule for rule in _ALL}
assert len(RULES) == len(_ALL), "a code is used once"
