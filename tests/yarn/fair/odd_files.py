"""Allocation files with one oddity each, by what it is: Hadoop's loader and ours must do the same with all of them."""

from __future__ import annotations


def _file(inside: str) -> str:
    return f"<allocations>{inside}</allocations>"


def _queue(inside: str) -> str:
    return _file(f'<queue name="a">{inside}</queue><queue name="b"/>')


FILES = {
    "empty": _file(""),
    "another top element": "<allocation/>",
    "not XML": "<allocations>",
    "DOCTYPE": "<!DOCTYPE allocations><allocations/>",
    "entities": '<!DOCTYPE a [<!ENTITY x "3">]><allocations><queue name="a"><weight>&x;</weight></queue></allocations>',
    "predefined entity": _queue("<aclSubmitApps>a&amp;b</aclSubmitApps>"),
    "character reference": _queue("<weight>&#51;</weight>"),
    "comment in a number": _queue("<weight>3<!-- and --> </weight>"),
    "comment before a number": _queue("<weight><!-- and -->3</weight>"),
    "comment amid a number": _queue("<weight>3<!-- and -->4</weight>"),
    "only a comment": _queue("<weight><!-- 3 --></weight>"),
    "CDATA": _queue("<weight><![CDATA[ 3 ]]></weight>"),
    "CDATA after text": _queue("<weight>3<![CDATA[4]]></weight>"),
    "text after CDATA": _queue("<weight><![CDATA[3]]>4</weight>"),
    "instruction in a number": _queue("<weight>3<?go on?>4</weight>"),
    "instruction before a number": _queue("<weight><?go on?>4</weight>"),
    "element in a number": _queue("<weight>3<b/>4</weight>"),
    "element before a number": _queue("<weight><b/>4</weight>"),
    "empty weight": _queue("<weight/>"),
    "blank weight": _queue("<weight> </weight>"),
    "blank access list": _queue("<aclSubmitApps> </aclSubmitApps>"),
    "empty access list": _queue("<aclSubmitApps></aclSubmitApps>"),
    "tabs and newlines": _queue("<weight>\n\t3\r\n</weight>"),
    "no-break space in a number": _queue("<weight>\u00a03</weight>"),
    "unknown element": _queue("<wieght>3</wieght>"),
    "unknown top element": _file('<wieght>3</wieght><queue name="a"/>'),
    "case matters": _queue("<Weight>3</Weight>"),
    "a namespace": '<allocations xmlns:x="y"><queue name="a"><x:weight>3</x:weight></queue></allocations>',
    "ueue is a queue": _queue('<ueue name="c"/><e name="d"><weight>7</weight></e>'),
    "ueue is none at the top": _file('<ueue name="c"/><queue name="a"/>'),
    "dot": _file('<queue name="a.b"/>'),
    "no name": _file("<queue/>"),
    "blank name": _file('<queue name="  "/>'),
    "white space around a name": _file('<queue name="\u2003a\u00a0 "><weight>2</weight></queue><queue name="b"/>'),
    "white space in a name": _file('<queue name="a b"/>'),
    "zero-width space in a name": _file('<queue name="\u200ba"/>'),
    "astral name": _file('<queue name="\U0001f600"/><queue name="\uff5e"/><queue name="z"/>'),
    "root": _file('<queue name="root"><weight>7</weight><queue name="a"/></queue>'),
    "root alone": _file('<queue name="root"><maxRunningApps>3</maxRunningApps></queue>'),
    "root as a leaf with an AM share": _file('<queue name="root"><maxAMShare>0.3</maxAMShare></queue>'),
    "root and another": _file('<queue name="root"/><queue name="a"/>'),
    "Root": _file('<queue name="Root"><queue name="a"><weight>5</weight></queue><queue name="b"/></queue>'),
    "root with space": _file('<queue name=" root"><queue name="a"><weight>5</weight></queue></queue><queue name="b"/>'),
    "root below": _file('<queue name="a"><queue name="root"/></queue>'),
    "below default": _file('<queue name="default"><queue name="a"/></queue><queue name="b"/>'),
    "twice": _file(
        '<queue name="a"><weight>2</weight></queue><queue name="a"><maxRunningApps>3</maxRunningApps></queue>'
    ),
    "twice, leaf and parent": _file(
        '<queue name="a"><weight>2</weight></queue><queue name="a"><queue name="b"/></queue>'
    ),
    "twice, parent and leaf": _file(
        '<queue name="a"><queue name="b"/></queue><queue name="a"><weight>2</weight></queue>'
    ),
    "twice below default": _file('<queue name="default"/><queue name="default"><queue name="b"/></queue>'),
    "marked parent": _file('<queue name="a" type="parent"/><queue name="b" type="leaf"/>'),
    "marked parent, and once a leaf": _file('<queue name="a" type="parent"/><queue name="a"/>'),
    "many twice": _file(
        "".join(f'<queue name="q{i}"/>' for i in range(20))
        + "".join(f'<queue name="q{i}"><queue name="x"/></queue>' for i in range(0, 20, 3))
    ),
    "AM share on a parent": _queue('<maxAMShare>0.3</maxAMShare><queue name="c"/>'),
    "AM share on a marked parent": _file('<queue name="a" type="parent"><maxAMShare>0.3</maxAMShare></queue>'),
    "reservation on a parent": _queue('<reservation/><queue name="c"/>'),
    "reservation": _queue("<reservation/>"),
    "minimum in percent": _queue("<minResources>50%</minResources>"),
    "container maximum in percent": _queue("<maxContainerAllocation>50%</maxContainerAllocation>"),
    "maximum without vcores": _queue("<maxResources>memory-mb=5000</maxResources>"),
    "maximum without memory": _queue("<maxResources>vcores=5</maxResources>"),
    "minimum without vcores": _queue("<minResources>memory-mb=5000</minResources>"),
    "default maximum without vcores": _file(
        '<queueMaxResourcesDefault>memory-mb=9</queueMaxResourcesDefault><queue name="a"/>'
    ),
    "other resources": _queue("<maxResources>memory-mb=5000,gpu=3</maxResources>"),
    "resource twice": _queue("<maxResources>vcores=3,memory-mb=5000,vcores=4</maxResources>"),
    "equals sign behind": _queue("<maxResources>vcores=3=,memory-mb=5000</maxResources>"),
    "comma behind": _queue("<maxResources>vcores=3,memory-mb=5000,</maxResources>"),
    "comma amid": _queue("<maxResources>vcores=3,,memory-mb=5000</maxResources>"),
    "MB in capitals": _queue("<maxResources>5000 MB, 3 VCORES</maxResources>"),
    "three parts": _queue("<maxResources>5000 mb, 3 vcores, 4 x</maxResources>"),
    "text behind": _queue("<maxResources>5000 mbytes, 3 vcores each</maxResources>"),
    "a name twice": _queue("<maxResources>5000 mb, 3000 mb</maxResources>"),
    "both in one": _queue("<maxResources>5000 mbvcores, 3 vcores</maxResources>"),
    "33-bit memory": _queue("<maxResources>5000000000 mb, 3 vcores</maxResources>"),
    "33-bit memory, new style": _queue("<maxResources>memory-mb=5000000000, vcores=5000000000</maxResources>"),
    "65-bit memory, new style": _queue("<maxResources>memory-mb=99999999999999999999, vcores=5</maxResources>"),
    "three percentages": _queue("<maxResources>50% memory, 10% cpu, 3% gpu</maxResources>"),
    "percent without comma": _queue("<maxResources>50% memory 10% cpu</maxResources>"),
    "percent with exponent": _queue("<maxResources>1e2%</maxResources>"),
    "percent mixed": _queue("<maxResources>memory-mb=50%,vcores=3</maxResources>"),
    "percent of memory alone": _queue("<maxResources>memory-mb=50%</maxResources>"),
    "percent of vcore": _queue("<maxResources>50% memory, 10% vcores</maxResources>"),
    "Arabic digits": _queue("<maxRunningApps>\u0663</maxRunningApps>"),
    "plus sign": _queue("<maxRunningApps>+3</maxRunningApps>"),
    "32-bit apps": _queue("<maxRunningApps>2147483648</maxRunningApps>"),
    "hexadecimal weight": _queue("<weight>0x1.8p1</weight>"),
    "hexadecimal weight without exponent": _queue("<weight>0x18</weight>"),
    "float suffix": _queue("<weight>2.5F</weight>"),
    "two suffixes": _queue("<weight>2.5fd</weight>"),
    "underscore": _queue("<weight>1_0</weight>"),
    "inf": _queue("<weight>inf</weight>"),
    "Infinity": _queue("<weight>+Infinity</weight>"),
    "minus NaN, inactive": _queue("<weight>-NaN</weight><maxResources>0 mb, 0 vcores</maxResources>"),
    "huge exponent": _queue("<weight>1e999999999999</weight>"),
    "tiny exponent": _queue("<weight>1e-999999999999</weight>"),
    "huge hexadecimal exponent": _queue("<weight>0x1p99999999999</weight>"),
    "many digits": _queue("<weight>" + "0" * 5000 + "3." + "1" * 5000 + "</weight>"),
    "many digits of an integer": _queue("<maxRunningApps>" + "0" * 5000 + "3</maxRunningApps>"),
    "halfway float": _queue("<maxAMShare>0.500000029802322387695312500000000000001</maxAMShare>"),
    "below halfway float": _queue("<maxAMShare>0.500000029802322387695312499999999999999</maxAMShare>"),
    "exactly halfway float": _queue("<maxAMShare>0.5000000298023223876953125</maxAMShare>"),
    "AM share NaN": _queue("<maxAMShare>NaN</maxAMShare>"),
    "threshold NaN": _queue("<fairSharePreemptionThreshold>NaN</fairSharePreemptionThreshold>"),
    "time-out overflows": _queue("<minSharePreemptionTimeout>9223372036854775807</minSharePreemptionTimeout>"),
    "time-out of a fraction": _queue("<minSharePreemptionTimeout>1.5</minSharePreemptionTimeout>"),
    "time-out of minus one": _queue("<minSharePreemptionTimeout>-1</minSharePreemptionTimeout>"),
    "default time-out hidden by root": _file(
        "<defaultMinSharePreemptionTimeout>x</defaultMinSharePreemptionTimeout>"
        '<queue name="root"><minSharePreemptionTimeout>5</minSharePreemptionTimeout></queue>'
    ),
    "default time-out broken": _file("<defaultMinSharePreemptionTimeout>x</defaultMinSharePreemptionTimeout>"),
    "default time-out, old name": _file("<fairSharePreemptionTimeout>7</fairSharePreemptionTimeout>"),
    "default time-out, both names": _file(
        "<fairSharePreemptionTimeout>x</fairSharePreemptionTimeout>"
        "<defaultFairSharePreemptionTimeout>9</defaultFairSharePreemptionTimeout>"
    ),
    "preemption flase": _queue("<allowPreemptionFrom>flase</allowPreemptionFrom>"),
    "preemption false, then true": _queue(
        "<allowPreemptionFrom>false</allowPreemptionFrom><allowPreemptionFrom>true</allowPreemptionFrom>"
    ),
    "preemption of a parent": _queue('<allowPreemptionFrom>false</allowPreemptionFrom><queue name="c"/>'),
    "drf below fair": _queue("<schedulingPolicy>drf</schedulingPolicy>"),
    "drf below fair, deep": _queue(
        '<queue name="c"><queue name="d"><schedulingPolicy>drf</schedulingPolicy></queue></queue>'
    ),
    "fifo parent": _queue('<schedulingPolicy>fifo</schedulingPolicy><queue name="c"/>'),
    "fifo root": _file('<queue name="root"><schedulingPolicy>fifo</schedulingPolicy><queue name="a"/></queue>'),
    "fair below drf": _file(
        "<defaultQueueSchedulingPolicy>DRF</defaultQueueSchedulingPolicy>"
        '<queue name="a"><schedulingPolicy>fair</schedulingPolicy><queue name="c"/></queue><queue name="b"/>'
    ),
    "policy by its class": _queue(
        "<schedulingPolicy>org.apache.hadoop.yarn.server.resourcemanager.scheduler.fair.policies.FifoPolicy"
        "</schedulingPolicy>"
    ),
    "unknown policy": _queue("<schedulingPolicy>best</schedulingPolicy>"),
    "default policy fifo": _file("<defaultQueueSchedulingPolicy>FIFO</defaultQueueSchedulingPolicy>"),
    "default policy fifo by its class": _file(
        "<defaultQueueSchedulingPolicy>org.apache.hadoop.yarn.server.resourcemanager.scheduler.fair.policies.FifoPolicy"
        '</defaultQueueSchedulingPolicy><queue name="a"/>'
    ),
    "user": _file(
        '<user name="u"><maxRunningApps>3</maxRunningApps><x/></user><user><maxRunningApps>4</maxRunningApps></user>'
    ),
    "user's limit broken": _file('<user name="u"><maxRunningApps>x</maxRunningApps></user>'),
    "containers' maximum from above": _queue(
        "<maxContainerAllocation>5000 mb, 3 vcores</maxContainerAllocation>"
        '<queue name="c"/><queue name="d"><maxContainerAllocation>9000 mb, 9 vcores</maxContainerAllocation></queue>'
    ),
    "placement without rules": _file("<queuePlacementPolicy/>"),
    "placement of blanks": _file("<queuePlacementPolicy> </queuePlacementPolicy>"),
    "placement of others": _file('<queuePlacementPolicy><rules name="x"/></queuePlacementPolicy>'),
    "placement that ends early": _file(
        '<queuePlacementPolicy><rule name="default"/><rule name="reject"/></queuePlacementPolicy>'
    ),
    "placement without end": _file('<queuePlacementPolicy><rule name="user" create="flase"/></queuePlacementPolicy>'),
    "placement, two parents": _file(
        '<queuePlacementPolicy><rule name="nestedUserQueue"><rule name="reject"/><rule name="primaryGroup"/></rule>'
        "</queuePlacementPolicy>"
    ),
    "placement, odd queue": _file('<queuePlacementPolicy><rule name="default" queue="a..b"/></queuePlacementPolicy>'),
    "placement, secondary with parent": _file(
        '<queuePlacementPolicy><rule name="secondaryGroupExistingQueue"><rule name="user"/></rule><rule name="reject"/>'
        "</queuePlacementPolicy>"
    ),
    "placement, reject with parent": _file(
        '<queuePlacementPolicy><rule name="reject"><rule name="user"/></rule></queuePlacementPolicy>'
    ),
}
