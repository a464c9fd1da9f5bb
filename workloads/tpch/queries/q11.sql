-- TPC-H Q11, important stock identification. The fraction is divided by the scale factor.
-- set nation = GERMANY
-- set fraction = 0.0001
with stock as (
  select ps_partkey, ps_supplycost * ps_availqty as amount
  from partsupp
  join supplier on s_suppkey = ps_suppkey
  join nation on n_nationkey = s_nationkey
  where n_name = '${nation}'
)
select ps_partkey, sum(amount) as value
from stock
group by ps_partkey
having sum(amount) > (select sum(amount) * ${fraction} from stock)
order by value desc
